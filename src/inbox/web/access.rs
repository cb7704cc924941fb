//! Who is let in: the token of scripts, keys that open the page once, and the sessions of browsers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret::Secret;

/// How long a key that was handed out opens the page: a person copies it from a terminal into a browser.
const KEY_LIFE: Duration = Duration::from_mins(5);

/// How many keys may be out at once; the oldest is forgotten.
const KEYS: usize = 16;

/// How long a browser may be away: longer than a night.
const SESSION_IDLE: Duration = Duration::from_hours(16);

/// How many browsers may be in at once; the one that was away longest is forgotten.
const SESSIONS: usize = 32;

/// What opens the server; made anew at every start, so that nothing of before opens it.
#[derive(Debug)]
pub(super) struct Access {
    token: Secret,
    opened: Mutex<Opened>,
}

#[derive(Debug, Default)]
struct Opened {
    /// The keys that were handed out and not used, the oldest first.
    keys: Vec<(Secret, Instant)>,
    sessions: Vec<Session>,
}

/// A browser that used a key.
#[derive(Debug, Clone)]
struct Session {
    cookie: Secret,
    /// What a write must bring besides the cookie; only a page of this origin can read it.
    csrf: Secret,
    used_at: Instant,
}

impl Access {
    /// Draws a new token; no browser has a session yet.
    pub(super) fn new() -> Self {
        Self {
            token: Secret::random(),
            opened: Mutex::default(),
        }
    }

    /// Returns the token of scripts.
    pub(super) fn token(&self) -> &Secret {
        &self.token
    }

    /// Hands out a key that opens the page once.
    pub(super) fn hand_out_key(&self, now: Instant) -> Secret {
        let key = Secret::random();
        let mut opened = self.opened();
        opened.keys.push((key.clone(), now));
        let surplus = opened.keys.len().saturating_sub(KEYS);
        opened.keys.drain(..surplus);
        key
    }

    /// Uses a key up and returns the cookie of the session that it opens; `None` for one that opens nothing.
    pub(super) fn open(&self, key: &str, now: Instant) -> Option<Secret> {
        let mut opened = self.opened();
        opened
            .keys
            .retain(|(_, made_at)| now.duration_since(*made_at) < KEY_LIFE);
        let place = opened.keys.iter().position(|(own, _)| own.is(key))?;
        opened.keys.remove(place);
        let session = Session {
            cookie: Secret::random(),
            csrf: Secret::random(),
            used_at: now,
        };
        let cookie = session.cookie.clone();
        if opened.sessions.len() >= SESSIONS {
            opened.sessions.sort_by_key(|session| session.used_at);
            opened.sessions.remove(0);
        }
        opened.sessions.push(session);
        Some(cookie)
    }

    /// Returns what the writes of a browser must bring; `None` for a cookie that is not known or too old.
    pub(super) fn csrf_of(&self, cookie: &str, now: Instant) -> Option<Secret> {
        let mut opened = self.opened();
        opened
            .sessions
            .retain(|session| now.duration_since(session.used_at) < SESSION_IDLE);
        let session = opened
            .sessions
            .iter_mut()
            .find(|session| session.cookie.is(cookie))?;
        session.used_at = now;
        Some(session.csrf.clone())
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_once_and_not_for_long() {
        let (access, now) = (Access::new(), Instant::now());
        let key = access.hand_out_key(now);
        assert!(access.open("", now).is_none());
        let cookie = access.open(key.text(), now).unwrap();
        assert!(access.open(key.text(), now).is_none());
        assert!(access.csrf_of(cookie.text(), now).is_some());
        assert!(access.csrf_of(key.text(), now).is_none());
        let late = access.hand_out_key(now);
        assert!(access.open(late.text(), now + KEY_LIFE).is_none());
    }

    #[test]
    fn a_browser_that_stays_away_is_forgotten_and_one_that_comes_is_not() {
        let (access, now) = (Access::new(), Instant::now());
        let enter = || access.open(access.hand_out_key(now).text(), now).unwrap();
        let (away, here) = (enter(), enter());
        let evening = now + SESSION_IDLE / 2;
        assert!(access.csrf_of(here.text(), evening).is_some());
        let morning = now + SESSION_IDLE;
        assert!(access.csrf_of(away.text(), morning).is_none());
        assert!(access.csrf_of(here.text(), morning).is_some());
    }

    #[test]
    fn keys_and_sessions_are_bounded() {
        let (access, now) = (Access::new(), Instant::now());
        let first = access.hand_out_key(now);
        for _ in 0..KEYS {
            access.hand_out_key(now);
        }
        assert!(access.open(first.text(), now).is_none());
        for _ in 0..SESSIONS + 5 {
            let key = access.hand_out_key(now);
            access.open(key.text(), now).unwrap();
        }
        assert_eq!(access.opened().sessions.len(), SESSIONS);
    }
}
