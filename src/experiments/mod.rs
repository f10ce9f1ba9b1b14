//! What `twin run` makes of measurements: tables, JSON, the paper's figures.

pub mod figures;
pub mod plot;
pub mod processor;
pub mod progress;
pub mod results;
pub mod table;
