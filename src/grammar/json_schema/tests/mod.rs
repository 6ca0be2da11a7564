//! Tests of the front end as a whole.

mod membership;
mod sample;
