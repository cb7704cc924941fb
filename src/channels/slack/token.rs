//! The two tokens of an app, told apart where one of them is not accepted.

/// A token by which a method is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// That of the app, which opens sockets: `appToken`.
    App,
    /// That of the bot, which speaks: `botToken`.
    Bot,
}
