//! Drives the real binary; one file per behaviour.
