//! Webhooks, their lanes and failures.

use super::*;
use crate::domain::event::{EventId, EventKind};
use crate::domain::id::WebhookId;
use crate::domain::webhook::{
    DeliveryFault, Disabled, DisabledReason, FailureState, WebhookEdit, WebhookHealth,
    WebhookSecret, WebhookSecrets,
};
use crate::metadata::{
    ClaimedLane, FailureRow, LaneSave, LaneSaved, LogSwitch, MOST_FAILURES, Requeued, Retried,
    RetriedFailure, WebhookChange, WebhookMade, WebhookRow,
};

fn webhook(number: i64) -> WebhookRow {
    WebhookRow {
        id: WebhookId::generate(at(number)),
        url: "https://example.org/hook?ä=1".parse().unwrap(),
        name: "Größe & Söhne".into(),
        organization: (number % 2 == 0).then(|| "acme".parse().unwrap()),
        kinds: vec![EventKind::FileReady, EventKind::FilePurged],
        secrets: WebhookSecrets { current: secret(1), former: None },
        created_at: at(number),
        changed_at: at(number),
        disabled: None,
        place: Some(event(1)),
        health: WebhookHealth::default(),
        next_due: None,
        owner: None,
    }
}

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::from_bytes([byte; 32])
}

fn event(number: u8) -> EventId {
    EventId::from_bytes([number; 16])
}

fn file(number: i64) -> FileId {
    FileId::first_at(at(number))
}

/// Inserts a webhook. Returns its id.
async fn inserted(metadata: &dyn Metadata, number: i64) -> WebhookId {
    let new = webhook(number);
    let id = new.id;
    assert_eq!(metadata.insert_webhook(new, 9).await.unwrap(), WebhookMade::Done);
    id
}

async fn one(metadata: &dyn Metadata, id: WebhookId) -> WebhookRow {
    metadata.webhooks(Some(id)).await.unwrap().remove(0)
}

async fn claim(
    metadata: &dyn Metadata,
    id: WebhookId,
    owner: &str,
    now: i64,
) -> Option<ClaimedLane> {
    let lease = Lease { owner, now: at(now), until: at(now + 60) };
    metadata.claim_lane(id, lease).await.unwrap()
}

fn save(id: WebhookId) -> LaneSave {
    LaneSave {
        id,
        owner: "owner".into(),
        now: at(50),
        place: Some(event(1)),
        ahead: Vec::new(),
        health: WebhookHealth::default(),
        failed: Vec::new(),
        retried: Vec::new(),
        disable: None,
    }
}

fn failure(number: u8, of: Option<i64>, state: FailureState, due: i64) -> FailureRow {
    FailureRow {
        row: 0,
        event: event(number),
        kind: EventKind::FileReady,
        organization: Some("acme".parse().unwrap()),
        file: of.map(file),
        body: format!("{{\"number\":{number}}}"),
        state,
        is_repeat: false,
        attempts: 1,
        at: at(due),
        last_status: Some(500),
    }
}

async fn saved(metadata: &dyn Metadata, save: LaneSave) -> LaneSaved {
    metadata.save_lane(save).await.unwrap().expect("the owner has the lane")
}

async fn listed(metadata: &dyn Metadata, id: WebhookId) -> Vec<(EventId, FailureState)> {
    let rows = metadata.failures(id, None, 0, 99).await.unwrap();
    rows.into_iter().map(|row| (row.event, row.state)).collect()
}

pub(crate) async fn a_webhook_reads_back_whole(metadata: &dyn Metadata) {
    let made = [webhook(1), webhook(2)];
    for row in &made {
        assert_eq!(metadata.insert_webhook(row.clone(), 2).await.unwrap(), WebhookMade::Done);
    }
    assert_eq!(metadata.webhooks(None).await.unwrap(), made, "oldest first");
    assert_eq!(one(metadata, made[1].id).await, made[1]);
    assert_eq!(metadata.insert_webhook(webhook(3), 2).await.unwrap(), WebhookMade::Full);
    assert!(metadata.webhooks(Some(WebhookId::generate(at(1)))).await.unwrap().is_empty());
}

pub(crate) async fn a_webhook_changes_what_the_change_names(metadata: &dyn Metadata) {
    let mut known = webhook(1);
    metadata.insert_webhook(known.clone(), 9).await.unwrap();
    let edit = WebhookEdit { name: Some("other".into()), ..WebhookEdit::default() };
    let changed = metadata.change_webhook(known.id, WebhookChange::Edit(edit), at(5)).await;
    known.name = "other".into();
    known.changed_at = at(5);
    assert_eq!(changed.unwrap(), Some(known.clone()));

    let edit = WebhookEdit {
        url: Some("https://example.com/".parse().unwrap()),
        kinds: Some(Vec::new()),
        ..WebhookEdit::default()
    };
    let changed = metadata.change_webhook(known.id, WebhookChange::Edit(edit), at(6)).await;
    known.url = "https://example.com/".parse().unwrap();
    known.kinds = Vec::new();
    known.changed_at = at(6);
    assert_eq!(changed.unwrap(), Some(known.clone()));

    let unknown = WebhookId::generate(at(1));
    let change = WebhookChange::Disable(DisabledReason::Requested);
    assert_eq!(metadata.change_webhook(unknown, change, at(7)).await.unwrap(), None);
}

pub(crate) async fn a_rotated_webhook_keeps_the_former_secret(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    for (number, before) in [(2, 1), (3, 2)] {
        let change = WebhookChange::Rotate(secret(number), at(90));
        let row = metadata.change_webhook(id, change, at(8)).await.unwrap().unwrap();
        assert_eq!(row.secrets.current, secret(number));
        assert_eq!(row.secrets.former, Some((secret(before), at(90))));
        assert_eq!(one(metadata, id).await, row);
    }
}

pub(crate) async fn a_disabled_webhook_has_no_lane_until_it_is_enabled(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    let change = WebhookChange::Disable(DisabledReason::Requested);
    let row = metadata.change_webhook(id, change, at(5)).await.unwrap().unwrap();
    assert_eq!(row.disabled, Some(Disabled::new(DisabledReason::Requested, at(5))));
    assert_eq!(claim(metadata, id, "owner", 10).await, None);

    let row = metadata.change_webhook(id, WebhookChange::Enable, at(6)).await.unwrap();
    assert_eq!(row.unwrap().disabled, None);
    assert_eq!(claim(metadata, id, "owner", 10).await.unwrap().place, Some(event(1)));

    let elsewhere = WebhookChange::EnableFrom(Some(event(9)));
    metadata.change_webhook(id, elsewhere, at(7)).await.unwrap();
    assert_eq!(one(metadata, id).await.place, Some(event(9)));
    metadata.change_webhook(id, WebhookChange::EnableFrom(None), at(7)).await.unwrap();
    assert_eq!(one(metadata, id).await.place, None);
}

pub(crate) async fn a_lane_counts_a_gap_of_the_log_and_begins_there(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    let key = [7; 32];
    metadata.open_events(LogSwitch::On, key, at(1)).await.unwrap();
    assert!(claim(metadata, id, "owner", 10).await.is_some());
    let ahead = LaneSave { ahead: vec![event(3)], ..save(id) };
    saved(metadata, ahead).await;
    metadata.release_lane(id, "owner").await.unwrap();

    metadata.open_events(LogSwitch::Off, key, at(51)).await.unwrap();
    assert_eq!(one(metadata, id).await.health.gaps, 0);
    metadata.open_events(LogSwitch::On, [8; 32], at(52)).await.unwrap();
    let lane = claim(metadata, id, "owner", 60).await.unwrap();
    assert_eq!((lane.place, lane.ahead, lane.health.gaps), (None, vec![], 1));
}

pub(crate) async fn a_lane_has_one_owner_until_its_lease_ends(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    assert!(claim(metadata, id, "owner", 10).await.is_some());
    assert_eq!(claim(metadata, id, "other", 69).await, None);
    assert!(claim(metadata, id, "owner", 20).await.is_some(), "its own again");
    let lease = Lease { owner: "owner", now: at(60), until: at(120) };
    assert_eq!(metadata.renew_lanes(lease).await.unwrap(), [id]);
    assert_eq!(claim(metadata, id, "other", 119).await, None);
    assert!(claim(metadata, id, "other", 120).await.is_some());

    let late = Lease { owner: "owner", now: at(120), until: at(180) };
    assert!(metadata.renew_lanes(late).await.unwrap().is_empty(), "it has lost the lane");
    assert_eq!(metadata.save_lane(save(id)).await.unwrap(), None, "the former owner is late");
    metadata.release_lane(id, "owner").await.unwrap();
    assert_eq!(claim(metadata, id, "third", 121).await, None, "it released another's lane");
    metadata.release_lane(id, "other").await.unwrap();
    assert!(claim(metadata, id, "third", 121).await.is_some());

    metadata.end_leases(at(121), at(121)).await.unwrap();
    assert!(claim(metadata, id, "owner", 122).await.is_some(), "a start ends all leases");
}

pub(crate) async fn a_lane_whose_place_or_url_is_changed_has_no_owner(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    let edit = WebhookEdit {
        url: Some("https://example.com/".parse().unwrap()),
        ..WebhookEdit::default()
    };
    for change in [WebhookChange::EnableFrom(Some(event(9))), WebhookChange::Edit(edit)] {
        claim(metadata, id, "owner", 10).await.unwrap();
        let mut paused = save(id);
        paused.health.paused_until = Some(at(99));
        paused.health.pauses = 4;
        saved(metadata, paused.clone()).await;
        assert_eq!(one(metadata, id).await.owner.as_deref(), Some("owner"));

        let row = metadata.change_webhook(id, change, at(20)).await.unwrap().unwrap();
        assert_eq!((row.owner, row.health.paused_until, row.health.pauses), (None, None, 0));
        paused.place = Some(event(5));
        assert_eq!(metadata.save_lane(paused).await.unwrap(), None, "the former owner is late");
        assert_eq!(one(metadata, id).await.place, row.place);
        assert_eq!(one(metadata, id).await.health, WebhookHealth::default());
    }
    let edit = WebhookEdit { name: Some("other".into()), ..WebhookEdit::default() };
    claim(metadata, id, "owner", 10).await.unwrap();
    let row = metadata.change_webhook(id, WebhookChange::Edit(edit), at(30)).await.unwrap();
    assert_eq!(row.unwrap().owner.as_deref(), Some("owner"), "a name changes no delivery");
}

pub(crate) async fn a_lane_reads_back_what_was_saved(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    let fresh = claim(metadata, id, "owner", 10).await.unwrap();
    assert_eq!((fresh.ahead, fresh.rows, fresh.failing), (vec![], 0, vec![]));

    let health = WebhookHealth {
        failing_since: Some(at(1)),
        paused_until: Some(at(2)),
        pauses: 3,
        last_status: Some(503),
        last_fault: Some(DeliveryFault::Timeout),
        last_attempt_at: Some(at(4)),
        last_success_at: Some(at(5)),
        gaps: 6,
    };
    let mut progress = save(id);
    progress.place = Some(event(4));
    progress.ahead = vec![event(6), event(7)];
    progress.health = health;
    progress.failed = vec![
        failure(2, Some(2), FailureState::Waiting, 70),
        failure(3, Some(2), FailureState::Held, 0),
        failure(5, None, FailureState::Waiting, 60),
    ];
    assert_eq!(saved(metadata, progress).await.next_due, Some(at(60)));

    let lane = claim(metadata, id, "owner", 51).await.unwrap();
    assert_eq!((lane.place, lane.ahead), (Some(event(4)), vec![event(6), event(7)]));
    assert_eq!((lane.health, lane.rows), (health, 3));
    assert_eq!((lane.failing, lane.next_due), (vec![file(2)], Some(at(60))));
    let row = one(metadata, id).await;
    assert_eq!((row.health, row.place, row.next_due), (health, Some(event(4)), Some(at(60))));
}

pub(crate) async fn due_failures_come_in_the_order_in_which_they_became_due(
    metadata: &dyn Metadata,
) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    let first = failure(2, Some(2), FailureState::Waiting, 70);
    progress.failed = vec![
        first.clone(),
        failure(3, Some(2), FailureState::Held, 0),
        failure(4, Some(3), FailureState::Waiting, 60),
        failure(5, Some(4), FailureState::Failed, 1),
    ];
    saved(metadata, progress).await;

    let due = async |now, limit| {
        let rows = metadata.due_failures(id, at(now), limit).await.unwrap();
        rows.iter().map(|row| row.event).collect::<Vec<_>>()
    };
    assert!(due(59, 9).await.is_empty());
    assert_eq!(due(60, 9).await, [event(4)]);
    assert_eq!(due(70, 9).await, [event(4), event(2)]);
    assert_eq!(due(70, 1).await, [event(4)]);

    let found = metadata.failure_of(id, event(2)).await.unwrap().unwrap();
    assert_eq!(FailureRow { row: 0, ..found }, first);
    assert_eq!(metadata.failure_of(id, event(9)).await.unwrap(), None);
    let failed = metadata.failures(id, Some(FailureState::Failed), 0, 9).await.unwrap();
    assert_eq!(failed.iter().map(|row| row.event).collect::<Vec<_>>(), [event(5)]);
    let rows = metadata.failures(id, None, 0, 2).await.unwrap();
    let rest = metadata.failures(id, None, rows[1].row, 9).await.unwrap();
    assert_eq!(rest.iter().map(|row| row.event).collect::<Vec<_>>(), [event(4), event(5)]);
}

pub(crate) async fn a_held_event_follows_the_end_of_the_one_before_it(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    progress.failed = vec![
        failure(2, Some(2), FailureState::Waiting, 20),
        failure(3, Some(2), FailureState::Held, 0),
        failure(4, Some(2), FailureState::Held, 0),
    ];
    saved(metadata, progress).await;

    let retried = async |outcome, attempts| {
        let due = metadata.due_failures(id, at(60), 9).await.unwrap();
        let [row] = &due[..] else { panic!("one is due: {due:?}") };
        let mut progress = save(id);
        progress.retried = vec![RetriedFailure {
            row: row.row,
            file: row.file,
            outcome,
            attempts,
            status: Some(404),
        }];
        (row.event, saved(metadata, progress).await)
    };
    let (of, after) = retried(Retried::Postponed(at(55)), 2).await;
    assert_eq!((of, after.freed, after.next_due), (event(2), vec![], Some(at(55))));
    let (of, after) = retried(Retried::GivenUp, 3).await;
    assert_eq!((of, after.freed, after.next_due), (event(2), vec![], Some(at(50))));
    let (of, after) = retried(Retried::Delivered, 1).await;
    assert_eq!((of, after.freed), (event(3), vec![]));
    let (of, after) = retried(Retried::Delivered, 1).await;
    assert_eq!((of, after.freed, after.next_due), (event(4), vec![file(2)], None));

    assert_eq!(listed(metadata, id).await, [(event(2), FailureState::Failed)]);
    let given_up = metadata.failure_of(id, event(2)).await.unwrap().unwrap();
    assert_eq!((given_up.attempts, given_up.last_status), (3, Some(404)));
    assert_eq!(given_up.at, at(50), "the last attempt");
}

pub(crate) async fn a_lane_lets_events_go_that_wait_for_none(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    progress.failed = vec![failure(3, Some(2), FailureState::Held, 0)];
    saved(metadata, progress).await;
    assert!(metadata.due_failures(id, at(99), 9).await.unwrap().is_empty());

    let lane = claim(metadata, id, "owner", 60).await.unwrap();
    assert_eq!(lane.next_due, Some(at(60)));
    assert_eq!(listed(metadata, id).await, [(event(3), FailureState::Waiting)]);
}

pub(crate) async fn an_event_is_queued_again_whatever_became_of_it(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    progress.failed = vec![
        failure(2, Some(2), FailureState::Waiting, 90),
        failure(3, Some(2), FailureState::Held, 0),
        failure(4, Some(3), FailureState::Failed, 1),
    ];
    saved(metadata, progress).await;

    let again = [2, 3, 4, 5].map(|number| failure(number, Some(9), FailureState::Waiting, 0));
    let outcome = metadata.requeue(id, again.to_vec(), metadata.era(), at(60)).await.unwrap();
    assert_eq!(outcome, Requeued::Done(4));
    let rows = metadata.failures(id, None, 0, 9).await.unwrap();
    let seen: Vec<_> =
        rows.iter().map(|row| (row.event, row.state, row.is_repeat, row.attempts)).collect();
    assert_eq!(
        seen,
        [
            (event(2), FailureState::Waiting, false, 1),
            (event(3), FailureState::Held, false, 1),
            (event(4), FailureState::Waiting, true, 0),
            (event(5), FailureState::Waiting, true, 0),
        ]
    );
    assert_eq!(metadata.due_failures(id, at(60), 9).await.unwrap().len(), 3);
    assert_eq!(claim(metadata, id, "owner", 61).await.unwrap().failing, [file(2)]);

    let unknown = WebhookId::generate(at(1));
    let outcome = metadata.requeue(unknown, again.to_vec(), metadata.era(), at(60)).await.unwrap();
    assert_eq!(outcome, Requeued::Unknown);
    let many = vec![again[0].clone(); usize::try_from(MOST_FAILURES).unwrap()];
    assert_eq!(metadata.requeue(id, many, metadata.era(), at(60)).await.unwrap(), Requeued::Full);
}

pub(crate) async fn an_event_that_fails_anew_replaces_what_was_left_of_it(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    progress.failed = vec![failure(3, Some(2), FailureState::Failed, 1)];
    assert_eq!(saved(metadata, progress).await.rows, 0);
    let repeat = failure(2, Some(2), FailureState::Waiting, 0);
    assert_eq!(
        metadata.requeue(id, vec![repeat], metadata.era(), at(60)).await.unwrap(),
        Requeued::Done(1)
    );

    let mut anew = save(id);
    anew.failed = vec![
        failure(2, Some(2), FailureState::Waiting, 90),
        failure(3, Some(2), FailureState::Held, 0),
    ];
    assert_eq!(saved(metadata, anew.clone()).await.rows, 2);
    let rows = metadata.failures(id, None, 0, 9).await.unwrap();
    let without_numbers = rows.iter().cloned().map(|row| FailureRow { row: 0, ..row });
    assert_eq!(without_numbers.collect::<Vec<_>>(), anew.failed, "in the order of the log");
    assert_eq!(saved(metadata, anew).await.rows, 2);
    assert_eq!(metadata.failures(id, None, 0, 9).await.unwrap(), rows, "they go on as they are");

    for (row, (left, freed)) in rows.iter().zip([(1, vec![]), (0, vec![file(2)])]) {
        let mut progress = save(id);
        progress.retried = vec![RetriedFailure {
            row: row.row,
            file: row.file,
            outcome: Retried::Delivered,
            attempts: 1,
            status: Some(200),
        }];
        let after = saved(metadata, progress).await;
        assert_eq!((after.rows, after.freed), (left, freed));
    }
    assert!(listed(metadata, id).await.is_empty());
}

pub(crate) async fn a_lane_disables_its_webhook_with_its_last_save(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut late = save(id);
    late.owner = "other".into();
    late.disable = Some(DisabledReason::Gone);
    assert_eq!(metadata.save_lane(late).await.unwrap(), None);
    assert_eq!(one(metadata, id).await.disabled, None);

    let mut last = save(id);
    last.disable = Some(DisabledReason::Gone);
    saved(metadata, last).await;
    let disabled = Some(Disabled::new(DisabledReason::Gone, at(50)));
    assert_eq!(one(metadata, id).await.disabled, disabled);
}

pub(crate) async fn a_deleted_webhook_leaves_nothing(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    progress.failed = vec![failure(2, Some(2), FailureState::Waiting, 90)];
    saved(metadata, progress).await;

    assert!(metadata.delete_webhook(id).await.unwrap());
    assert!(!metadata.delete_webhook(id).await.unwrap());
    assert!(metadata.webhooks(None).await.unwrap().is_empty());
    assert!(listed(metadata, id).await.is_empty());
    assert_eq!(metadata.save_lane(save(id)).await.unwrap(), None);
    assert_eq!(claim(metadata, id, "owner", 11).await, None);
}

pub(crate) async fn old_failures_are_forgotten_up_to_the_limit(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let mut progress = save(id);
    progress.failed = vec![
        failure(2, None, FailureState::Failed, 20),
        failure(3, None, FailureState::Failed, 21),
        failure(4, None, FailureState::Failed, 30),
        failure(5, None, FailureState::Waiting, 1),
    ];
    saved(metadata, progress).await;

    assert_eq!(metadata.forget_failures(at(30), 1).await.unwrap(), 1);
    assert_eq!(metadata.forget_failures(at(30), 9).await.unwrap(), 1);
    let left = listed(metadata, id).await;
    assert_eq!(left, [(event(4), FailureState::Failed), (event(5), FailureState::Waiting)]);
}

pub(crate) async fn an_erasure_takes_the_webhooks_of_its_organization(metadata: &dyn Metadata) {
    let (all, own) = (inserted(metadata, 1).await, inserted(metadata, 2).await);
    for id in [all, own] {
        claim(metadata, id, "owner", 10).await.unwrap();
        let mut progress = save(id);
        let of_another = FailureRow {
            organization: Some("other".parse().unwrap()),
            ..failure(3, Some(3), FailureState::Waiting, 9)
        };
        progress.failed = vec![failure(2, Some(2), FailureState::Waiting, 9), of_another];
        saved(metadata, progress).await;
    }

    let acme = "acme".parse().unwrap();
    assert_eq!(metadata.left_of(&acme).await.unwrap().webhooks, 3, "one webhook, two events");
    assert_eq!(metadata.forget_webhooks_of(&acme).await.unwrap(), 1);
    assert_eq!(metadata.left_of(&acme).await.unwrap().webhooks, 0);
    let mut carrying = save(all);
    carrying.failed = vec![failure(4, Some(2), FailureState::Waiting, 9)];
    assert_eq!(metadata.save_lane(carrying).await.unwrap(), None, "a lane that read it before");
    assert_eq!(metadata.forget_webhooks_of(&acme).await.unwrap(), 0);
    let left = metadata.webhooks(None).await.unwrap();
    assert_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), [all]);
    assert_eq!(listed(metadata, all).await, [(event(3), FailureState::Waiting)]);
    assert!(listed(metadata, own).await.is_empty());
}

pub(crate) async fn an_erasure_spares_events_of_files_that_were_uploaded_after_it(
    metadata: &dyn Metadata,
) {
    let id = inserted(metadata, 1).await;
    claim(metadata, id, "owner", 10).await.unwrap();
    let acme = "acme".parse().unwrap();
    let later = put(metadata, ready("acme")).await;
    let mut progress = save(id);
    progress.failed = vec![
        failure(2, Some(2), FailureState::Waiting, 9),
        FailureRow { file: Some(later.file_id), ..failure(3, None, FailureState::Waiting, 9) },
        FailureRow {
            kind: EventKind::OrganizationErased,
            ..failure(4, None, FailureState::Waiting, 9)
        },
    ];
    saved(metadata, progress).await;

    assert_eq!(metadata.left_of(&acme).await.unwrap().webhooks, 1);
    metadata.forget_webhooks_of(&acme).await.unwrap();
    assert_eq!(metadata.left_of(&acme).await.unwrap().webhooks, 0);
    let left: Vec<_> = listed(metadata, id).await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(left, [event(3), event(4)]);
}

pub(crate) async fn events_read_before_an_erasure_are_not_queued_after_it(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await;
    let era = metadata.era();
    metadata.end_era(&"acme".parse().unwrap(), at(40)).await.unwrap();
    let of_another = FailureRow {
        organization: Some("other".parse().unwrap()),
        ..failure(3, Some(3), FailureState::Waiting, 0)
    };
    let rows = vec![failure(2, Some(2), FailureState::Waiting, 0), of_another];
    let outcome = metadata.requeue(id, rows.clone(), era, at(60)).await.unwrap();
    assert_eq!(outcome, Requeued::Done(1));
    assert_eq!(listed(metadata, id).await, [(event(3), FailureState::Waiting)]);

    let outcome = metadata.requeue(id, rows, metadata.era(), at(60)).await.unwrap();
    assert_eq!(outcome, Requeued::Done(2), "events from after it");
}
