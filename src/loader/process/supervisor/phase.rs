//! The order in which a server ends: what follows each event, and after how long. Pure.

use std::time::Duration;

/// How long a server may take to end by itself after its stdin closed, and again after SIGTERM: both together
/// leave pml time to be gone within a second of its own end of file.
const GENTLE_GRACE: Duration = Duration::from_millis(300);

/// How long a server may take after SIGTERM when pml was told to end: clients kill pml 400 ms after that.
const URGENT_GRACE: Duration = Duration::from_millis(150);

/// Where a server stands on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndPhase {
    /// It serves.
    Running,
    /// It has seen the end of its stdin.
    Closing,
    /// It has been told to end by SIGTERM.
    Terminating(Duration),
    /// Everything is to be killed now.
    Ending,
}

/// What moves a server along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndEvent {
    /// pml closed the pipe, or is dead.
    HungUp,
    /// pml wants it gone at once.
    Asked,
    /// The server has exited, its descendants have not.
    Exited,
    /// Nothing is left.
    Gone,
    /// The time of the phase is over.
    Overdue,
}

impl EndPhase {
    /// Returns what follows; this is the whole order of death.
    pub(super) fn after(self, event: EndEvent) -> Self {
        match (self, event) {
            (_, EndEvent::Gone) | (Self::Terminating(_), EndEvent::Overdue | EndEvent::Asked) => Self::Ending,
            (Self::Running, EndEvent::HungUp) => Self::Closing,
            (Self::Running | Self::Closing, EndEvent::Asked | EndEvent::Exited) => {
                Self::Terminating(URGENT_GRACE)
            }
            (Self::Closing, EndEvent::Overdue) => Self::Terminating(GENTLE_GRACE),
            (phase, _) => phase,
        }
    }

    /// Returns how long the phase lasts, if it ends by itself.
    pub(super) fn lasts(self) -> Option<Duration> {
        match self {
            Self::Running | Self::Ending => None,
            Self::Closing => Some(GENTLE_GRACE),
            Self::Terminating(grace) => Some(grace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [EndPhase; 5] = [
        EndPhase::Running,
        EndPhase::Closing,
        EndPhase::Terminating(GENTLE_GRACE),
        EndPhase::Terminating(URGENT_GRACE),
        EndPhase::Ending,
    ];
    const EVENTS: [EndEvent; 5] = [
        EndEvent::HungUp,
        EndEvent::Asked,
        EndEvent::Exited,
        EndEvent::Gone,
        EndEvent::Overdue,
    ];

    #[test]
    fn a_closed_pipe_leads_to_the_end_through_both_graces() {
        let closing = EndPhase::Running.after(EndEvent::HungUp);
        let terminating = closing.after(EndEvent::Overdue);
        assert_eq!(
            [closing, terminating, terminating.after(EndEvent::Overdue)],
            [
                EndPhase::Closing,
                EndPhase::Terminating(GENTLE_GRACE),
                EndPhase::Ending
            ]
        );
    }

    #[test]
    fn being_asked_shortens_every_phase() {
        assert_eq!(
            PHASES.map(|phase| phase.after(EndEvent::Asked)),
            [
                EndPhase::Terminating(URGENT_GRACE),
                EndPhase::Terminating(URGENT_GRACE),
                EndPhase::Ending,
                EndPhase::Ending,
                EndPhase::Ending,
            ]
        );
    }

    #[test]
    fn a_server_that_ends_by_itself_takes_its_descendants_along() {
        assert_eq!(
            PHASES.map(|phase| phase.after(EndEvent::Exited)),
            [
                EndPhase::Terminating(URGENT_GRACE),
                EndPhase::Terminating(URGENT_GRACE),
                EndPhase::Terminating(GENTLE_GRACE),
                EndPhase::Terminating(URGENT_GRACE),
                EndPhase::Ending,
            ]
        );
    }

    #[test]
    fn nothing_leads_back() {
        let rank = |phase| match phase {
            EndPhase::Running => 0,
            EndPhase::Closing => 1,
            EndPhase::Terminating(_) => 2,
            EndPhase::Ending => 3,
        };
        for phase in PHASES {
            for event in EVENTS {
                assert!(
                    rank(phase.after(event)) >= rank(phase),
                    "{phase:?} after {event:?}"
                );
            }
            assert_eq!(phase.after(EndEvent::Gone), EndPhase::Ending);
        }
    }

    #[test]
    fn every_phase_but_running_ends_by_itself() {
        for phase in [EndPhase::Closing, EndPhase::Terminating(GENTLE_GRACE)] {
            assert!(phase.lasts().is_some());
            assert_ne!(phase.after(EndEvent::Overdue), phase);
        }
        assert_eq!(EndPhase::Running.lasts(), None);
    }

    #[test]
    fn the_longest_order_of_death_fits_into_a_second_and_the_urgent_one_into_400_ms() {
        assert!(GENTLE_GRACE * 2 < Duration::from_secs(1));
        assert!(URGENT_GRACE < Duration::from_millis(400));
    }
}
