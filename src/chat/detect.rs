//! Which format a model writes, from what comes with the model.
