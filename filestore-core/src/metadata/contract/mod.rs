//! The contract suite: the required behaviour of every [`Metadata`] engine, as test functions.
//!
//! [`contract_tests!`] turns all functions into tests of an engine. If its list lacks a function, the
//! function is dead code, and the compiler reports it.

use std::sync::Arc;
use std::time::Duration;

use super::{
    BindingSeen, DueFiles, Expected, InsertFiles, Inserted, Lease, Metadata, Purged, UpdateFile,
    Updated, WriteIntent, Writes,
};
use crate::domain::access::scope::Scope;
use crate::domain::file::custom_metadata::CustomMetadata;
use crate::domain::file::lifecycle::FileState;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{Blob, Deletion, FileRecord};
use crate::domain::file::status::Location;
use crate::domain::id::{BlobId, FileId, KeyId, OrganizationId, OrganizationNumber, Sha256};
use crate::domain::provider::ProviderCode;
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;

pub(crate) mod files;
pub(crate) mod file_changes;
pub(crate) mod listing;
pub(crate) mod organizations;
pub(crate) mod idempotency;
pub(crate) mod resumables;
pub(crate) mod bindings;
pub(crate) mod keys;
pub(crate) mod purges;
pub(crate) mod dropped;
pub(crate) mod receipts;
pub(crate) mod explaining;
pub(crate) mod backlog;
pub(crate) mod leases;
pub(crate) mod holds;
pub(crate) mod syncs;
pub(crate) mod sync_claims;
pub(crate) mod holdings;
pub(crate) mod intents;
pub(crate) mod signing;
pub(crate) mod erasures;
pub(crate) mod events;
pub(crate) mod webhooks;
pub(crate) mod inspection;
pub(crate) mod upkeep;
pub(crate) mod damage;
pub(crate) mod plans;

/// Creates a test for each function of the suite, with the attribute in brackets. `$make` is the absolute path of
/// a function that returns an empty engine and a guard. The guard must outlive the engine, and is a
/// [`Vandal`](damage::Vandal).
macro_rules! contract_tests {
    ($attribute:tt $make:path) => {
        $crate::metadata::contract::contract_tests! { @list $attribute $make:
            files {
                an_inserted_file_reads_back_whole,
                an_unknown_file_is_none,
                a_foreign_file_looks_like_an_unknown_one,
                several_files_are_read_together,
                a_batch_with_a_bad_row_leaves_nothing,
                a_batch_over_the_quota_leaves_nothing,
                the_quota_lets_the_last_byte_in,
                the_quota_of_files_lets_the_last_file_in,
                an_insert_placed_by_another_binding_is_refused,
                an_organization_without_a_number_has_no_binding_to_check,
                live_local_keys_are_those_that_records_refer_to,
                files_of_the_disk_are_listed_since_a_time,
                usage_follows_inserts_replaces_and_purges,
            }
            file_changes {
                an_update_changes_all_that_may_change,
                an_update_from_another_state_is_lost,
                a_move_of_the_bytes_keeps_an_edit_that_it_has_not_seen,
                of_two_concurrent_edits_one_is_done,
                of_two_concurrent_updates_one_is_done,
                an_update_that_grows_is_checked_against_the_quota,
                an_update_placed_by_another_binding_is_refused,
                a_change_is_visible_at_once_in_memory_too,
                deleting_marks_once_and_restoring_clears_the_mark,
                a_placeholder_stays_with_the_bytes_it_shows,
            }
            listing {
                every_filter_and_scope_shows_exactly_its_files,
                names_types_times_and_metadata_narrow_a_listing,
                an_edited_file_is_found_by_what_it_is_now,
                a_filter_that_few_files_pass_costs_a_page_and_says_where_to_go_on,
                paging_goes_on_past_ties_and_deletions,
                a_filter_outside_the_scope_shows_nothing,
                files_of_a_sync_status_are_listed_whatever_the_others_are,
                every_order_shows_all_files_in_pages,
                a_part_of_a_name_is_found_in_upper_and_lower_case,
            }
            organizations {
                organizations_with_files_or_a_binding_are_listed,
                sub_systems_are_listed_with_what_is_temporary_and_deleted,
                the_totals_of_a_sub_system_follow_every_change,
            }
            idempotency {
                a_reply_is_remembered_with_its_files,
                a_taken_key_inserts_nothing_and_beats_the_quota,
                an_expired_reply_is_gone_and_gives_its_key_back,
                expired_replies_are_forgotten_up_to_the_limit,
                of_two_concurrent_inserts_with_one_key_one_is_done,
            }
            resumables {
                an_upload_reads_back_whole,
                a_change_from_another_row_is_lost,
                an_upload_finishes_once_with_its_record,
                an_upload_that_another_request_has_makes_no_file,
                an_upload_replaces_the_bytes_of_a_file,
                a_key_finds_its_upload_until_that_has_failed,
                open_uploads_are_bounded_in_all_and_for_an_organization,
                live_uploads_are_those_of_one_server,
                uploads_of_all_organizations_are_listed_in_pages,
                a_change_of_an_upload_expects_its_length,
                completing_uploads_are_those_of_one_server,
                an_upload_moves_to_another_server,
                an_ended_upload_is_forgotten_once_its_bytes_are_gone,
                a_cancelled_upload_is_gone_unless_it_completes,
                an_erasure_fails_live_uploads_and_refuses_new_ones_of_its_past,
                the_secret_of_uploads_is_made_once,
            }
            bindings {
                a_created_binding_is_active_and_listed,
                a_second_active_binding_is_refused,
                of_concurrent_creations_one_is_done,
                a_change_leaves_the_rest_as_it_was,
                a_terminated_binding_resumes_with_its_id_and_start,
                resuming_needs_an_active_provider,
                without_a_binding_there_is_nothing_to_change,
                the_newest_terminated_binding_resumes,
                each_change_of_a_binding_shows_at_once,
                the_active_bindings_of_several_are_read_together,
            }
            webhooks {
                a_webhook_reads_back_whole,
                a_webhook_changes_what_the_change_names,
                a_rotated_webhook_keeps_the_former_secret,
                a_disabled_webhook_has_no_lane_until_it_is_enabled,
                a_lane_has_one_owner_until_its_lease_ends,
                a_lane_counts_a_gap_of_the_log_and_begins_there,
                a_lane_reads_back_what_was_saved,
                due_failures_come_in_the_order_in_which_they_became_due,
                a_held_event_follows_the_end_of_the_one_before_it,
                a_lane_lets_events_go_that_wait_for_none,
                an_event_is_queued_again_whatever_became_of_it,
                a_lane_disables_its_webhook_with_its_last_save,
                a_deleted_webhook_leaves_nothing,
                old_failures_are_forgotten_up_to_the_limit,
                an_event_that_fails_anew_replaces_what_was_left_of_it,
                a_lane_whose_place_or_url_is_changed_has_no_owner,
                an_erasure_takes_the_webhooks_of_its_organization,
                an_erasure_spares_events_of_files_that_were_uploaded_after_it,
                events_read_before_an_erasure_are_not_queued_after_it,
            }
            keys {
                a_key_reads_back_whole,
                a_revoked_key_stays_revoked,
                a_rotated_key_remembers_the_digest_before,
                what_is_unknown_is_not_changed,
                a_dead_key_makes_room_for_a_new_one,
                the_last_use_only_moves_forward,
            }
            purges {
                temp_files_expire_up_to_the_limit,
                claims_come_oldest_first_and_only_after_the_grace,
                a_claimed_file_is_due_whatever_its_mark_says,
                a_claim_of_one_organization_takes_no_file_of_another,
                a_claim_of_one_organization_leaves_what_a_hold_keeps,
                temp_files_of_one_organization_expire_alone,
                an_organization_has_deleted_files_until_they_are_purged,
                a_claimed_file_is_not_claimed_twice_nor_restored,
                of_two_concurrent_runs_each_file_goes_to_one,
                a_lease_that_ended_can_be_taken_over,
                a_failed_purge_waits_and_stays_claimed,
                only_the_owner_finishes,
                a_finished_purge_takes_the_dropped_blobs_along,
                a_finished_purge_leaves_what_was_withdrawn_at_a_provider,
                what_failed_comes_after_what_came_due_before_its_next_attempt,
                a_purge_waits_for_the_dropped_blobs_at_other_providers,
            }
            dropped {
                a_run_that_is_late_ends_no_blob_that_was_dropped_since,
                dropped_blobs_come_due_and_are_finished_or_postponed,
                each_holder_has_claims_and_dropped_blobs_of_its_own,
            }
            receipts {
                a_receipt_says_who_deleted_and_what_was_absent,
                the_first_deletion_counts_and_a_restore_takes_it_back,
                an_expired_file_was_deleted_by_its_expiry,
                blobs_that_a_file_dropped_are_on_its_receipt,
                a_blob_that_was_found_twice_is_on_the_receipt_once,
                a_foreign_receipt_looks_like_an_unknown_one,
                old_receipts_are_forgotten_up_to_the_limit,
            }
            explaining {
                a_file_is_read_with_the_work_that_waits_for_it,
                a_deleted_file_is_read_with_its_purge,
                the_holds_of_a_file_are_those_that_cover_its_row,
                the_work_on_a_foreign_file_looks_like_that_on_an_unknown_one,
            }
            backlog {
                the_backlog_of_one_organization_counts_no_other,
                the_backlog_counts_what_a_run_would_find,
                what_waits_is_counted_by_the_provider_that_has_it_to_do,
            }
            leases {
                clearing_leases_frees_them_but_keeps_the_waits,
                purge_leases_can_be_renewed_and_released,
                waits_end_when_the_provider_answers_again,
                the_waits_of_all_organizations_are_cut_short,
                a_lease_can_be_renewed_and_ends,
                released_claims_count_no_attempt,
                clearing_leases_makes_files_wait_again,
                waits_are_cut_short_where_they_are_longer,
            }
            holds {
                what_a_hold_keeps_waits_until_it_ends,
                a_hold_lasts_as_long_as_it_is_renewed,
                a_start_ends_all_holds,
                a_snapshot_names_the_files_that_no_purge_had_claimed,
            }
            syncs {
                files_with_nowhere_to_go_are_settled,
                files_bound_elsewhere_wait,
                files_already_there_are_settled,
                settling_stops_at_the_limit_and_goes_on,
                deleted_files_are_not_settled,
                the_queue_of_an_organization_is_counted,
                counts_follow_every_change,
            }
            sync_claims {
                a_claim_is_syncing_and_its_copy_is_noted,
                a_claimed_file_is_nobody_elses,
                only_files_bound_to_a_target_are_claimed,
                organizations_take_turns,
                a_file_waits_between_its_attempts_and_fails_at_the_end,
                an_excused_failure_counts_no_attempt,
                a_record_says_why_its_copy_failed_until_it_is_tried_anew,
                a_replace_begins_all_attempts_anew,
                a_flip_is_lost_when_the_file_was_replaced_or_deleted,
                queueing_takes_what_is_elsewhere_page_by_page,
                failed_files_are_queued_again,
            }
            holdings {
                files_elsewhere_come_oldest_first_and_page_by_page,
                holdings_are_counted_by_provider_and_status,
            }
            intents {
                a_blob_at_a_provider_needs_its_intent,
                an_intent_ends_with_its_record,
                a_withdrawn_write_becomes_a_dropped_blob,
                old_writes_are_withdrawn_up_to_the_limit,
                a_renewed_write_is_young_again,
            }
            signing {
                a_new_secret_signs_and_the_one_before_verifies_for_its_time,
                a_revoked_secret_is_gone_at_once,
                a_permit_is_spent_with_the_file_that_it_was_for,
                one_permit_serves_only_one_of_two_uploads,
                a_permit_that_came_too_late_is_refused_and_forgotten,
            }
            erasures {
                an_erased_organization_leaves_nothing,
                an_insert_that_began_before_an_erasure_is_refused,
                what_an_erasure_has_deleted_or_hastened_is_not_restored,
            }
            events {
                every_transition_tells_what_the_rules_say,
                every_call_tells_what_the_rules_say,
                an_erasure_tells_nothing_about_its_files,
                an_edit_and_a_return_are_told_with_what_they_changed,
                a_refused_change_tells_nothing,
                bindings_keys_and_checks_are_told,
                parts_of_the_log_are_read_both_ways,
                old_events_are_forgotten_except_the_newest,
                a_log_that_was_off_tells_its_gap,
                every_organization_sees_the_gap_of_the_log,
                a_position_that_no_log_has_is_unknown,
                a_waiting_reader_hears_of_the_next_event,
                a_reader_beside_many_writers_misses_nothing,
            }
            inspection {
                a_walk_meets_every_record_once,
                orphans_are_what_nothing_refers_to,
                a_live_blob_is_spared,
                a_location_is_set_right,
                a_sound_row_is_left_alone_and_shown_whole,
                totals_are_what_their_files_add_up_to,
                a_check_goes_on_from_its_stored_state,
            }
            upkeep {
                it_answers,
                settings_are_kept_by_name,
                the_id_of_a_store_cannot_be_set,
                calls_of_many_tasks_all_succeed,
                a_call_that_nobody_waits_for_is_done_all_the_same,
                after_closing_every_call_fails,
            }
        }
        $crate::metadata::contract::contract_tests! { @damaged $attribute $make:
            a_damaged_record_is_named_and_harms_no_other,
            a_repaired_record_is_damaged_no_more,
            damaged_records_do_not_keep_others_from_the_purge,
            a_damaged_dropped_blob_keeps_its_own_file_only_from_the_purge,
            damaged_records_and_bindings_do_not_keep_others_from_their_provider,
            a_page_of_files_to_move_is_full_beside_damaged_ones,
            a_page_of_sub_systems_is_full_beside_damaged_ones,
            an_organization_that_cannot_be_read_is_named,
        }
        mod damaged_events {
            $crate::metadata::contract::contract_tests! { @one $attribute $make:
                events a_damaged_event_keeps_its_place
            }
        }
    };
    (@damaged $attribute:tt $make:path: $($name:ident,)*) => {
        mod damage { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #$attribute
            async fn $name() {
                let (engine, guard) = $make();
                $crate::metadata::contract::damage::$name(&engine, &guard).await;
            }
        )* }
    };
    (@one $attribute:tt $make:path: $group:ident $name:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #$attribute
        async fn $name() {
            let (engine, guard) = $make();
            $crate::metadata::contract::$group::$name(&engine, &guard).await;
        }
    };
    (@list $attribute:tt $make:path: $($group:ident { $($name:ident,)* })*) => {
        $(mod $group { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #$attribute
            async fn $name() {
                let (engine, _guard) = $make();
                $crate::metadata::contract::$group::$name(&engine).await;
            }
        )* })*
    };
}
pub(crate) use contract_tests;

/// Returns a lease from `now` to `until`.
pub(crate) fn lease(owner: &str, now: Timestamp, until: Timestamp) -> Lease<'_> {
    Lease { owner, now, until }
}

/// Returns a time, `millis` after a fixed day in 2026.
pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_795_248_930_000 + millis)
}

pub(crate) fn organization(text: &str) -> OrganizationId {
    text.parse().unwrap()
}

pub(crate) fn number(number: i64) -> OrganizationNumber {
    number.try_into().unwrap()
}

fn provider(code: &str) -> ProviderCode {
    code.parse().unwrap()
}

pub(crate) fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

/// Returns a READY, PENDING, LOCAL file of 10 bytes, uploaded at `at(0)`.
pub(crate) fn ready(organization: &str) -> FileRecord {
    uploaded(organization, at(0))
}

/// Returns a READY, PENDING, LOCAL file of 10 bytes, uploaded at `now`.
pub(crate) fn uploaded(organization: &str, now: Timestamp) -> FileRecord {
    let organization_id: OrganizationId = organization.parse().unwrap();
    let sub_system = "gallery".parse().unwrap();
    FileRecord {
        file_id: FileId::generate(now),
        blob: Blob {
            provider: ProviderCode::local(),
            key: BlobKey::new(&organization_id, &sub_system, now, BlobId::generate(now)),
            size_bytes: 10,
            sha256: Sha256([7; 32]),
            sniffed_type: None,
            dimensions: None,
            stored_at: now,
            thumbhash: None,
        },
        organization_id,
        sub_system,
        original_name: "grüße 🎉.txt".into(),
        mime_type: "text/plain".into(),
        ext: "txt".into(),
        state: FileState::uploaded(Location::Local),
        version: 1,
        created_at: now,
        updated_at: now,
        expires_at: None,
        metadata: CustomMetadata::default(),
        edited_at: None,
        deletion: None,
        sync_attempts: 0,
        sync_error: None,
    }
}

/// Returns a TEMP file that expires at `at(1000)`.
pub(crate) fn temp(organization: &str) -> FileRecord {
    FileRecord {
        state: FileState::uploaded_temp(),
        expires_at: Some(at(1000)),
        ..ready(organization)
    }
}

pub(crate) fn sized(record: FileRecord, size_bytes: u64) -> FileRecord {
    FileRecord { blob: Blob { size_bytes, ..record.blob }, ..record }
}

/// Returns a file with its bytes at `code`.
pub(crate) fn in_cloud(record: FileRecord, code: &str) -> FileRecord {
    FileRecord {
        state: FileState::uploaded(Location::Cloud),
        blob: Blob { provider: provider(code), ..record.blob },
        ..record
    }
}

/// Returns `record` with a new blob of `size_bytes`, like after a replacement at `now`.
pub(crate) fn replaced(record: &FileRecord, size_bytes: u64, now: Timestamp) -> FileRecord {
    let key = BlobKey::new(&record.organization_id, &record.sub_system, now, BlobId::generate(now));
    FileRecord {
        blob: Blob { key, size_bytes, stored_at: now, ..record.blob.clone() },
        version: record.version + 1,
        updated_at: now,
        ..record.clone()
    }
}

/// Returns `record`, deleted at `now`.
pub(crate) fn deleted(record: &FileRecord, now: Timestamp) -> FileRecord {
    let deletion = Some(record.deletion.unwrap_or_else(|| Deletion::at(now)));
    FileRecord { state: record.state.delete(), updated_at: now, deletion, ..record.clone() }
}

/// Returns `record`, restored at its last change.
pub(crate) fn restored(record: &FileRecord) -> FileRecord {
    FileRecord { state: record.state.restore(), deletion: None, ..record.clone() }
}

/// Returns an insert without binding, quota or key.
pub(crate) fn insert(records: impl Into<Vec<FileRecord>>) -> InsertFiles {
    InsertFiles {
        records: records.into(),
        binding: BindingSeen { organization: None, active: None },
        quota_bytes: None,
        quota_files: None,
        idempotency: None,
        permit: None,
        era: Era::default(),
        upload: None,
    }
}

/// Returns a change from `old` to `next` without dropped blob, quota or binding.
pub(crate) fn change(old: &FileRecord, next: FileRecord) -> UpdateFile {
    UpdateFile {
        expected: Expected::of(old),
        now: next.updated_at,
        next,
        drop_blob: None,
        quota_bytes: None,
        binding: None,
        deleted_by: None,
        writes: Writes::Record,
        upload: None,
    }
}

/// Records a write intent for the blob of `record`, if a provider holds it.
pub(crate) async fn note(metadata: &dyn Metadata, record: &FileRecord) {
    if !record.blob.provider.is_local() {
        let intent = WriteIntent {
            file_id: record.file_id,
            provider: record.blob.provider.clone(),
            key: record.blob.key.clone(),
            begun_at: record.updated_at,
            owner: None,
        };
        metadata.begin_writes(vec![intent]).await.unwrap();
    }
}

/// Returns `record`, READY, with a new blob at `code`, like after a sync or a migration.
pub(crate) fn moved(record: &FileRecord, code: &str) -> FileRecord {
    let code = provider(code);
    let location = if code.is_local() { Location::Local } else { Location::Cloud };
    let key =
        BlobKey::new(&record.organization_id, &record.sub_system, at(0), BlobId::generate(at(0)));

    FileRecord {
        state: record.state.move_to(location).unwrap(),
        blob: Blob { key, provider: code, ..record.blob.clone() },
        ..record.clone()
    }
}

/// Inserts the record.
pub(crate) async fn put(metadata: &dyn Metadata, record: FileRecord) -> FileRecord {
    note(metadata, &record).await;
    assert_eq!(metadata.insert_files(insert([record.clone()])).await.unwrap(), Inserted::Done);
    record
}

/// Inserts the record and deletes the file at `now`.
pub(crate) async fn put_deleted(
    metadata: &dyn Metadata,
    record: FileRecord,
    now: Timestamp,
) -> FileRecord {
    let record = put(metadata, record).await;
    let next = deleted(&record, now);
    assert_eq!(metadata.update_file(change(&record, next.clone())).await.unwrap(), Updated::Done);
    next
}

pub(crate) async fn get(metadata: &dyn Metadata, id: FileId) -> Option<Arc<FileRecord>> {
    metadata.file(id, &Scope::All).await.unwrap()
}

pub(crate) const MINUTE: Duration = Duration::from_mins(1);
