//! The suite that every provider passes: run against the S3 server of these tests, and against real
//! providers by `tests/services/run`.

pub(crate) mod uploads;
pub(crate) mod reads;
pub(crate) mod moves;
pub(crate) mod check;
pub(crate) mod fsck;
pub(crate) mod backups;
pub(crate) mod part_uploads;
pub(crate) mod backend;

use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::{NoProgress, PurgeReport, SyncReport};
use filestore_server::Config;
use filestore_workspace::{Remote, TestServer, eventually};

/// Makes a test of each function of the suite. `$make` gives a future of two remotes and whatever must
/// outlive them.
#[macro_export]
macro_rules! provider_suite {
    ($make:path: $($group:ident { $($name:ident,)* })*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (one, two, _guard) = $make().await;
                $crate::suite::$group::$name(&one, &two).await;
            }
        )*)*
    };
    ($make:path) => {
        $crate::provider_suite! { $make:
            uploads {
                each_binding_sends_uploads_its_way,
                temp_and_thumbnail_stay_and_follow_once_ready,
                a_batch_is_written_through_whole,
                a_large_file_arrives_in_parts,
                an_empty_file_is_a_file,
                a_replace_goes_where_an_upload_would,
            }
            reads {
                a_cloud_file_is_read_by_redirect_or_stream,
                a_redirect_is_cached_for_less_than_its_url_lives,
                any_name_and_type_survive_the_redirect,
                a_presigned_url_carries_any_name,
                a_type_with_blanks_in_a_row_is_stored,
                a_type_leaves_for_and_from_a_provider_in_one_form,
                an_edited_file_is_redirected_to_its_new_name_and_type,
                conditions_are_ignored_on_redirects,
                variants_of_a_cloud_file_are_made_here,
                the_client_downloads_and_resumes,
            }
            moves {
                files_move_out_between_and_home_while_they_are_read,
                a_plan_says_what_would_move_and_a_status_where_it_is,
                verify_reads_every_byte,
                the_purge_removes_bytes_where_they_are_and_were,
                files_from_before_a_binding_move_when_they_are_queued,
            }
            check {
                a_check_finds_the_provider_sound,
            }
            backend {
                all_that_is_local_goes_to_the_backend,
                files_go_from_the_backend_to_a_cloud_and_back,
                files_of_the_data_directory_move_to_a_backend,
                nobody_names_the_backend,
            }
            fsck {
                objects_are_checked_in_both_directions,
                an_organization_is_erased_at_its_provider,
            }
            backups {
                a_snapshot_is_made_verified_restored_and_pruned,
                two_snapshots_at_once_and_what_a_killed_run_left,
                files_at_one_provider_are_saved_at_another,
            }
        }
    };
}

/// A server that knows `remotes`, keeps dropped blobs for no time, and tries again soon.
pub(crate) async fn serve(remotes: &[&Remote]) -> TestServer {
    serve_with(remotes, |_| ()).await
}

pub(crate) async fn serve_with(
    remotes: &[&Remote],
    adjust: impl FnOnce(&mut Config),
) -> TestServer {
    TestServer::start_with(|config| {
        config.store.providers = remotes.iter().map(|remote| remote.config.clone()).collect();
        // Its objects would be counted with those of the tests.
        config.check_providers = false;
        config.store.blob_grace = Duration::ZERO;
        config.store.sync.first_pause = Duration::from_millis(20);
        adjust(config);
    })
    .await
}

/// Runs the sync worker until nothing waits.
pub(crate) async fn sync_all(server: &TestServer) -> SyncReport {
    filestore_workspace::eventually("nothing waits for its provider", async || {
        let report = server.store().admin().sync(Arc::new(NoProgress)).await.expect("a run");
        (report.waiting == 0).then_some(report)
    })
    .await
}

/// Runs the purge worker until nothing is left for it, at no provider. What a provider refused, or could
/// not be asked for while it was out, is tried again after its pause.
pub(crate) async fn sweep(server: &TestServer) -> PurgeReport {
    let mut total = PurgeReport::default();
    eventually("nothing is left to purge", async || {
        let report = server.store().admin().purge(&NoProgress).await.expect("a run");
        total.purged += report.purged;
        for (provider, count) in report.removed_at {
            *total.removed_at.entry(provider).or_default() += count;
        }

        let backlog = server.store().admin().backlog().await.expect("a count");
        backlog.iter().all(|left| left.purge.count + left.dropped.count == 0).then_some(())
    })
    .await;
    total
}

/// Sweeps, after which no remote has an object.
pub(crate) async fn sweep_all(server: &TestServer, remotes: &[&Remote]) -> PurgeReport {
    let report = sweep(server).await;
    for remote in remotes {
        assert_eq!(remote.objects().await, [""; 0], "left at {}", remote.code());
    }
    report
}

/// Reads a file as a browser would: redirects are followed with a bare request.
pub(crate) async fn read(server: &TestServer, file_id: &str) -> Vec<u8> {
    let reply = server.content(file_id).send().await;
    match reply.status {
        200 => reply.body.to_vec(),
        302 => fetch(reqwest::Method::GET, reply.only("location")).await.expect(200).body.to_vec(),
        status => panic!("{status}: {}", reply.text()),
    }
}

/// A bare request, as from someone who knows nothing but the URL.
pub(crate) async fn fetch(method: reqwest::Method, url: &str) -> filestore_workspace::Reply {
    filestore_workspace::Call::bare(method, url).send().await
}
