//! `explain`: shows where a file is and why, what comes next, and what happened, on one screen.

use std::fmt::Write as _;

use filestore_core::api::{Event, ExplainedFact, ExplainedHistory, ExplainedStep, Explanation};

use super::events::details;
use crate::failure::{Exit, Result};
use crate::output::{Output, counted, plain, when};
use crate::store::Target;

/// The number of events that are shown, so that an explanation fits on a screen.
const MOST_EVENTS: usize = 8;

/// `explain ID`: explains a file.
pub(super) async fn run(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let explained = target.explain(id).await.map_err(|failure| {
        let is_missing = failure.is_missing();
        let failure = failure.doing(format!("cannot explain {id}"));
        let hint = "check the id. The file might belong to another organization, or its purge receipt might \
                    be older than 90 days (the default)";
        if is_missing { failure.hint(hint) } else { failure }
    })?;
    out.data(&explained, |explained| vec![explained.file_id.as_str()], text)?;
    Ok(Exit::Done)
}

/// The lines of an explanation, with a label in front of the first line of each part.
#[derive(Default)]
struct Lines {
    text: String,
    label: &'static str,
}

impl Lines {
    /// Begins a part.
    fn part(&mut self, label: &'static str) -> &mut Self {
        self.label = label;
        self
    }

    fn line(&mut self, line: &str) {
        let label = std::mem::take(&mut self.label);
        writeln!(self.text, "{label:<6}  {line}").expect("a string accepts every write");
    }

    fn facts(&mut self, facts: &[ExplainedFact]) {
        for fact in facts {
            self.line(&fact_text(fact));
        }
    }
}

fn text(explained: &Explanation) -> String {
    let mut lines = Lines::default();
    lines.part("file").line(&subject(explained));
    lines.part("where").facts(&explained.place);
    lines.part("why").facts(&explained.why);
    lines.part("next");
    for step in &explained.next {
        lines.line(&step_text(step));
        for fact in &step.waits_for {
            lines.line(&format!("  waits: {}", fact_text(fact)));
        }
        for fact in &step.then {
            lines.line(&format!("  then: {}", fact_text(fact)));
        }
        if let Some(command) = &step.undo {
            lines.line(&format!("  to prevent this: filestore {}", plain(command)));
        }
    }
    lines.part("tried").facts(&explained.tried);
    lines.part("events");
    for line in history_lines(&explained.history) {
        lines.line(&line);
    }
    lines.text
}

/// Describes the file in one line.
fn subject(explained: &Explanation) -> String {
    let (id, organization) = (plain(&explained.file_id), plain(&explained.organization_id));
    let Some(record) = &explained.record else {
        return format!("{id}: purged; organization {organization}");
    };
    let mut words = vec![plain(record.status.as_str())];
    words.extend(record.purge_status.as_ref().map(|status| plain(status.as_str())));
    words.push(plain(record.sync_status.as_str()));
    words.push(plain(record.storage_location.as_str()));
    words.push(format!("version {}", record.version));
    let sub_system = plain(&record.sub_system);
    format!("{id}: {}; organization {organization}, {sub_system}", words.join(", "))
}

/// Formats a fact with its times and its error.
fn fact_text(fact: &ExplainedFact) -> String {
    let since = fact.since.as_deref().map(|at| format!("since {} UTC", when(at)));
    let until = fact.until.as_deref().map(|at| format!("until {} UTC", when(at)));
    let times: Vec<String> = since.into_iter().chain(until).collect();

    let mut text = plain(&fact.sentence);
    if !times.is_empty() {
        write!(text, " ({})", times.join(", ")).expect("a string accepts every write");
    }
    if let Some(error) = &fact.error {
        write!(text, ": {}", plain(error)).expect("a string accepts every write");
    }
    text
}

/// Formats a step with its earliest time and its attempts.
fn step_text(step: &ExplainedStep) -> String {
    let mut text = plain(&step.sentence);
    if let Some(at) = &step.not_before {
        write!(text, ", not before {} UTC", when(at)).expect("a string accepts every write");
    }
    match (step.attempt, step.max_attempts) {
        (Some(attempt), Some(most)) => write!(text, " (attempt {attempt} of {most})"),
        (Some(attempt), None) if attempt > 1 => write!(text, " (attempt {attempt})"),
        (Some(_) | None, _) => Ok(()),
    }
    .expect("a string accepts every write");
    text
}

/// Formats the newest events of the file, and says which ones are missing.
fn history_lines(history: &ExplainedHistory) -> Vec<String> {
    if !history.enabled {
        return vec!["events are switched off in this store".to_owned()];
    }
    let mut lines = Vec::new();
    if !history.whole {
        let looked_at = counted(history.looked_at, "event");
        lines.push(format!(
            "earlier events are not known: looked through {looked_at} of the organization"
        ));
    }
    let earlier = history.events.len().saturating_sub(MOST_EVENTS);
    if earlier > 0 {
        lines.push(format!("{} earlier (see --json)", counted(earlier as u64, "event")));
    }
    lines.extend(history.events.iter().skip(earlier).map(event_text));
    lines
}

/// Formats an event with its time and facts.
fn event_text(event: &Event) -> String {
    let (at, kind) = (when(&event.timestamp), plain(event.kind.as_str()));
    let facts = plain(&details(&event.data));
    if facts.is_empty() { format!("{at} UTC {kind}") } else { format!("{at} UTC {kind}: {facts}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(events: usize) -> ExplainedHistory {
        let event = r#"{"id":"x","type":"file.edited","timestamp":"2026-11-21T08:15:30.123Z",
            "data":{"version":1,"changed":["name"]}}"#;
        let mut history = ExplainedHistory::default();
        history.enabled = true;
        history.whole = true;
        history.events = vec![serde_json::from_str(event).unwrap(); events];
        history
    }

    #[test]
    fn a_history_shows_the_newest_events_and_counts_earlier_ones() {
        let line = "2026-11-21 08:15:30 UTC file.edited: version 1, changed name";
        assert_eq!(history_lines(&history(1)), [line]);
        let lines = history_lines(&history(MOST_EVENTS + 1));
        assert_eq!(
            (lines.len(), lines[0].as_str()),
            (MOST_EVENTS + 1, "1 event earlier (see --json)")
        );
    }

    #[test]
    fn a_history_that_is_not_whole_says_so() {
        let mut part = history(1);
        (part.whole, part.looked_at) = (false, 2000);
        let lines = history_lines(&part);
        assert!(lines[0].contains("looked through 2000 events"), "{lines:?}");
        let off = history_lines(&ExplainedHistory::default());
        assert_eq!(off, ["events are switched off in this store"]);
    }

    #[test]
    fn a_part_without_facts_has_no_line() {
        let mut explained = Explanation::default();
        explained.file_id = "01JD8QZ4T6X3M2V9B7K5N1R0CE".into();
        assert!(!text(&explained).contains("tried"));
    }

    #[test]
    fn an_error_of_a_provider_cannot_command_the_terminal() {
        let mut fact = ExplainedFact::default();
        fact.sentence = "1 copy failed".into();
        fact.error = Some("\x1b[2Jrefused".into());
        assert_eq!(fact_text(&fact), "1 copy failed: \u{FFFD}[2Jrefused");
    }
}
