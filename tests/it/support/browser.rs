//! Real Chromium, driven through its own driver.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::eventually;

/// A page on a busy machine is drawn within this; reaching it is a failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// One browser with a profile of its own.
pub(crate) struct Browser {
    driver: Child,
    runtime: Runtime,
    client: Client,
    _profile: tempfile::TempDir,
}

/// How a window looks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    Light,
    Dark,
    Phone,
}

/// How often a driver is started: one that finds no port ends at once.
const DRIVERS: usize = 5;

impl Browser {
    /// Starts a browser; `have(&["chromium", "chromedriver"])` comes first.
    pub(crate) fn start(look: Look) -> Self {
        let (driver, port) = start_driver();
        let profile = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let capabilities = capabilities(profile.path(), look);
        let client = runtime.block_on(async {
            ClientBuilder::new(HttpConnector::new())
                .capabilities(capabilities)
                .connect(&format!("http://127.0.0.1:{port}"))
                .await
                .unwrap()
        });
        let browser = Self {
            driver,
            runtime,
            client,
            _profile: profile,
        };
        let (width, height) = match look {
            Look::Light | Look::Dark => (1000, 1100),
            Look::Phone => (390, 844),
        };
        let sized = browser.client.set_window_size(width, height);
        browser.runtime.block_on(sized).unwrap();
        browser
    }

    /// Opens a page.
    pub(crate) fn goto(&self, url: &str) {
        self.runtime.block_on(self.client.goto(url)).unwrap();
    }

    /// Loads the page again.
    pub(crate) fn reload(&self) {
        self.runtime.block_on(self.client.refresh()).unwrap();
    }

    /// Returns what a script returns.
    pub(crate) fn eval(&self, script: &str) -> Value {
        let run = self.client.execute(script, Vec::new());
        self.runtime.block_on(run).unwrap()
    }

    /// Returns what a script gives to its callback, the last of its arguments.
    pub(crate) fn eval_async(&self, script: &str) -> Value {
        let run = self.client.execute_async(script, Vec::new());
        self.runtime.block_on(run).unwrap()
    }

    /// Waits until a script returns something that is true.
    pub(crate) fn wait_for(&self, what: &str, script: &str) {
        eventually(what, PATIENCE, || {
            let found = self.client.execute(script, Vec::new());
            matches!(self.runtime.block_on(found), Ok(value) if truthy(&value))
        });
    }

    /// Waits until the page shows something.
    pub(crate) fn wait_for_element(&self, css: &str) {
        let script = format!("return !!document.querySelector({})", json!(css));
        self.wait_for(css, &script);
    }

    /// Clicks as a person does: what is hidden or covered cannot be clicked.
    ///
    /// A card may be drawn anew between looking for its button and pressing it; a person would press again.
    pub(crate) fn click(&self, css: &str) {
        let mut failed = None;
        let begin = std::time::Instant::now();
        while begin.elapsed() < PATIENCE {
            let clicked = self.runtime.block_on(async {
                let element = self.client.find(Locator::Css(css)).await?;
                element.click().await
            });
            match clicked {
                Ok(()) => return,
                Err(error) => failed = Some(error),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{css} cannot be clicked: {failed:?}");
    }

    /// Clicks if what is to be clicked is there and can be; a card may go away under the pointer.
    pub(crate) fn try_click(&self, css: &str) {
        let _ = self.runtime.block_on(async {
            let element = self.client.find(Locator::Css(css)).await?;
            element.click().await
        });
    }

    /// Types into a field.
    pub(crate) fn type_into(&self, css: &str, text: &str) {
        self.wait_for_element(css);
        self.runtime.block_on(async {
            let element = self.client.find(Locator::Css(css)).await.unwrap();
            element.send_keys(text).await.unwrap();
        });
    }

    /// Returns the text of an element as it is drawn.
    pub(crate) fn text(&self, css: &str) -> String {
        self.wait_for_element(css);
        let script = format!("return document.querySelector({}).innerText", json!(css));
        self.eval(&script).as_str().unwrap_or_default().to_owned()
    }

    /// Opens another tab and turns to it.
    pub(crate) fn new_tab(&self) {
        self.runtime.block_on(async {
            let window = self.client.new_window(true).await.unwrap();
            self.client.switch_to_window(window.handle).await.unwrap();
        });
    }

    /// Turns to the tab with this number.
    pub(crate) fn turn_to_tab(&self, index: usize) {
        self.runtime.block_on(async {
            let windows = self.client.windows().await.unwrap();
            self.client
                .switch_to_window(windows[index].clone())
                .await
                .unwrap();
        });
    }

    /// Closes this tab and turns to the first of the others.
    pub(crate) fn close_tab(&self) {
        self.runtime.block_on(async {
            self.client.close_window().await.unwrap();
            let windows = self.client.windows().await.unwrap();
            self.client.switch_to_window(windows[0].clone()).await.unwrap();
        });
    }

    /// Returns what the browser complained about since it was last asked.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.runtime.block_on(self.client.issue_cmd(BrowserLog)).unwrap();
        let entries = log.as_array().cloned().unwrap_or_default();
        let entries = entries.iter().filter_map(|entry| entry["message"].as_str());
        entries.map(str::to_owned).collect()
    }

    /// Takes a picture of the window.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        self.runtime.block_on(self.client.screenshot()).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let closing = self.client.clone().close();
        let _ = self
            .runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(5), closing).await });
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The messages of the console, which Chromium's driver gives away.
#[derive(Debug)]
struct BrowserLog;

impl WebDriverCompatibleCommand for BrowserLog {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _url: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({ "type": "browser" }).to_string()))
    }
}

/// Starts the driver on a port that is free.
///
/// It chooses one for IPv4, wants the same for IPv6, and ends where another program has just taken that.
fn start_driver() -> (Child, u16) {
    let started = (0..DRIVERS).find_map(|_| {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let Some(port) = port_of(&mut driver) else {
            driver.wait().unwrap();
            return None;
        };
        Some((driver, port))
    });
    started.expect("chromedriver says its port")
}

/// Reads the port that the driver chose from what it prints; `None` if it ended before.
fn port_of(driver: &mut Child) -> Option<u16> {
    let stdout = BufReader::new(driver.stdout.take().unwrap());
    let mut lines = stdout.lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        // Its first line repeats the port that was asked for, which is none.
        let (_, port) = line.rsplit_once(" on port ")?;
        port.trim_end_matches('.').parse().ok().filter(|port| *port != 0)
    });
    // What it prints later has a reader too.
    std::thread::spawn(move || lines.for_each(drop));
    port
}

fn capabilities(profile: &std::path::Path, look: Look) -> serde_json::Map<String, Value> {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-quic".to_owned(),
        "--no-first-run".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--lang=en".to_owned(),
        // What fades in has less contrast at first: a page is judged as it stands.
        "--force-prefers-reduced-motion".to_owned(),
        format!("--user-data-dir={}", profile.display()),
    ];
    if matches!(look, Look::Dark) {
        arguments.push("--force-dark-mode".to_owned());
        arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
    }
    let wanted = json!({
        "browserName": "chrome",
        "goog:loggingPrefs": { "browser": "ALL" },
        "goog:chromeOptions": { "args": arguments },
        "timeouts": { "script": 90_000, "pageLoad": 60_000 },
    });
    match wanted {
        Value::Object(wanted) => wanted,
        _ => serde_json::Map::new(),
    }
}

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != &json!(0) && value != &json!("")
}
