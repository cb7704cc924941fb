//! The short name of a device, as it stands beside an answer: `linux-firefox`.
//!
//! A browser says of itself what it likes, so this is for people and decides nothing.

/// What a `User-Agent` holds, and the system that this means; the first that is found counts.
const SYSTEMS: [(&str, &str); 8] = [
    ("Android", "android"),
    ("iPhone", "iphone"),
    ("iPad", "ipad"),
    ("Windows", "windows"),
    ("CrOS", "chromeos"),
    ("Macintosh", "mac"),
    ("Linux", "linux"),
    ("BSD", "bsd"),
];

/// What a `User-Agent` holds, and the browser that this means; most of them also claim to be Chrome or Safari.
const BROWSERS: [(&str, &str); 10] = [
    ("Edg", "edge"),
    ("OPR/", "opera"),
    ("SamsungBrowser", "samsung"),
    ("Firefox/", "firefox"),
    ("FxiOS", "firefox"),
    ("CriOS", "chrome"),
    ("Chrome/", "chrome"),
    ("Safari/", "safari"),
    ("curl/", "curl"),
    ("python", "python"),
];

/// Names the device that a `User-Agent` describes.
pub(super) fn name(user_agent: &str) -> String {
    let found = |names: &[(&str, &'static str)]| {
        let known = names.iter().find(|(mark, _)| user_agent.contains(mark));
        known.map(|(_, name)| *name)
    };
    match (found(&SYSTEMS), found(&BROWSERS)) {
        (Some(system), Some(browser)) => format!("{system}-{browser}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => "browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_browsers_have_short_names() {
        for (user_agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
                "linux-firefox",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0 Mobile Safari/537.36",
                "android-chrome",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
                "iphone-safari",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0 Safari/537.36 Edg/148.0",
                "windows-edge",
            ),
            ("curl/8.5.0", "curl"),
            ("\u{202e}evil", "browser"),
            ("", "browser"),
        ] {
            assert_eq!(name(user_agent), expected, "{user_agent}");
        }
    }
}
