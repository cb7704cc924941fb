//! The page in real Chromium.
