//! HTTP server and web pages over published things.
