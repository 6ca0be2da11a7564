//! Metric names, live counters, logs, the panic hook.

pub mod live;
pub mod logs;
pub mod metrics;
