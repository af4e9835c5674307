//! `/auth/…`: people sign in and out, and see their sessions. What an identity provider said is turned into a session in
//! one place (`finish`), whichever protocol it was said in.

pub mod finish;
