//! The name of the variable that bounds the size of an installation: installers obey it, and their errors name it.

/// Lets a person install what is larger than the bound.
pub(super) const MAX_INSTALL: &str = "PML_MAX_INSTALL_MIB";
