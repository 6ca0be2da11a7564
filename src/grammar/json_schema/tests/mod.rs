//! Tests of the front end as a whole.

mod membership;
mod random;
mod refusals;
mod sample;
mod table;
