//! Orders samples and says them in words.

use std::time::Duration;

/// The sample below which so many of a hundred lie; zero where there are none.
pub(crate) fn percentile(samples: &[Duration], percent: usize) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}

pub(crate) fn median(samples: &[Duration]) -> Duration {
    percentile(samples, 50)
}

/// How many times `two` fits into `one`.
pub(crate) fn ratio(one: Duration, two: Duration) -> f64 {
    one.as_secs_f64() / two.as_secs_f64()
}

/// A duration as a table shows it, with three digits that count.
pub(crate) fn shown(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        micros if micros < 10.0 => format!("{micros:.2} µs"),
        micros if micros < 100.0 => format!("{micros:.1} µs"),
        micros if micros < 1_000.0 => format!("{micros:.0} µs"),
        micros if micros < 10_000.0 => format!("{:.2} ms", micros / 1e3),
        micros if micros < 100_000.0 => format!("{:.1} ms", micros / 1e3),
        micros => format!("{:.0} ms", micros / 1e3),
    }
}

/// A size in megabytes of a million bytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// A whole number with its thousands set apart.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
