//! The manifest from which Slack makes the app: what pml needs and nothing more.

use serde_json::{Value, json};

/// Returns the manifest of an app for pml.
pub(crate) fn manifest() -> Value {
    json!({
        "display_information": { "name": "pml", "description": "Asks you what your agents may do" },
        "features": {
            "bot_user": { "display_name": "pml", "always_online": false },
            "app_home": {
                "home_tab_enabled": false,
                "messages_tab_enabled": true,
                "messages_tab_read_only_enabled": false,
            },
        },
        "oauth_config": { "scopes": { "bot": ["chat:write", "im:write", "im:history"] } },
        "settings": {
            "event_subscriptions": { "bot_events": ["message.im"] },
            "interactivity": { "is_enabled": true },
            "org_deploy_enabled": false,
            "socket_mode_enabled": true,
            "token_rotation_enabled": false,
        },
    })
}
