//! learn
