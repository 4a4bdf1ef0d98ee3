//! Blocking client of a hub.
