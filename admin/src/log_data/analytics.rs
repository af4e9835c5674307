//! What is told of figures beside themselves: when budgets end, and answers as sheets. Figures about calls come through the door to
//! logs (`log_data`).

pub mod budgets;
pub mod csv;
