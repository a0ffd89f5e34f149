// Written by scripts/schema.mjs from filestore-server/docs/openapi.json. Do not edit.

/**
 * The way in which a service admits callers.
 * - `open`: Without keys: every caller who can reach the server can do everything.
 * - `keys`: With keys: each request needs an API key.
 */
export type AccessMode = 'open' | 'keys' | (string & {});

/** A provider, with the details for an administrator. */
export interface AdminProvider {
  /** Work that waits for the provider. */
  backlog: ProviderBacklog;
  /** True if the provider accepts new files. */
  is_active: boolean;
  /** True if the provider is in the configuration. If false, some work still waits for it. */
  is_configured: boolean;
  /** True if filestore's tests cover this service kind. */
  is_tested: boolean;
  /** Last error since startup, in one line without secrets. Stays after the provider answers again. */
  last_error: string | null;
  /** Last error time, in RFC 3339. */
  last_error_at: string | null;
  /** Provider code, for example `LOCAL` or `s3-eu`. */
  provider_code: string;
  /** The provider's display name. */
  provider_name: string;
  /** Service kind: `s3`, `azblob`, `gcs`, `fs` or `memory`. `local` for the disk of the server. */
  scheme: string;
  /** The worse breaker state: of reads or of writes. Null if the provider has no breaker. */
  state: BreakerState | null;
  /** This state's start time, in RFC 3339 (UTC, milliseconds). */
  state_since: string | null;
  /** The provider's location: `LOCAL` or `CLOUD`. */
  storage_location: StorageLocation;
}

/**
 * Kind of a problem in `advice`.
 * - `database_fault`: The database does not answer, or its figures cannot be read.
 * - `storage_fault`: The storage accepts no bytes.
 * - `disk_full`: Uploads are refused, because the disk is full.
 * - `disk_low`: The disk is nearly full.
 * - `damaged_rows`: The store skips damaged rows.
 * - `missing_blobs`: Files have no bytes on the disk.
 * - `open_findings`: The last check has open findings.
 * - `unfinished_uploads`: Uploads without a commit are close to their limit.
 * - `provider_failing`: A provider does not answer, or gets no writes.
 * - `provider_missing`: Work waits for a provider that the configuration no longer contains.
 * - `provider_inactive`: Files wait for a copy to an inactive provider.
 * - `work_waiting`: A provider answers, and work still waits for it.
 * - `sync_failed`: Files have no copy attempts left.
 * - `events_held_back`: Readers of events wait for an open transaction.
 * - `webhook_failing`: The endpoint of a webhook accepts no event for a long time.
 * - `webhook_disabled`: The server has disabled a webhook.
 * - `other`: Another problem. `about` names its subject.
 */
export type AdviceCode =
  | 'database_fault'
  | 'storage_fault'
  | 'disk_full'
  | 'disk_low'
  | 'damaged_rows'
  | 'missing_blobs'
  | 'open_findings'
  | 'unfinished_uploads'
  | 'provider_failing'
  | 'provider_missing'
  | 'provider_inactive'
  | 'work_waiting'
  | 'sync_failed'
  | 'events_held_back'
  | 'webhook_failing'
  | 'webhook_disabled'
  | 'other'
  | (string & {});

/** A blob that the purge still has to remove or check again. */
export interface AwaitedBlob {
  /** Earliest time for the next check. Null while a write of this object might still be in progress. */
  due_at: string | null;
  /** The blob's storage key. */
  key: string;
  /** Code of the provider that might store the blob. */
  provider: string;
}

/** A backup destination from the server configuration. */
export interface BackupDestination {
  /** Destination name, for use in requests. */
  name: string;
}

/** The reason why a started run failed. */
export interface BackupError {
  /** Stable error code, as in a problem document. */
  code: ErrorCode;
  /** Explanation for people. */
  message: string;
}

/** A missing or damaged blob. */
export interface BackupFault {
  /** A file id with this blob, if known. */
  file_id?: string | null;
  /** `missing`, `wrong` (other bytes) or `unreachable` (the provider does not answer). */
  problem: string;
  /** Expected SHA-256 digest, in hexadecimal digits. */
  sha256: string;
  /** Expected size, in bytes. */
  size_bytes: number;
}

/** The `backup forget` result. */
export interface BackupForgetReport {
  /** Forgotten directories. */
  forgotten: number;
}

/** The result for a backup destination. */
export interface BackupLook {
  /** Check time. */
  checked_at: string;
  /** Destination name. */
  destination: string;
  /**
   * Id of the checked directory, or of an earlier directory at this path that is not available. Absent if the id is
   * unknown.
   */
  destination_id?: string | null;
  /** SHA-256 digests of bytes at the destination that belong to no finished snapshot. */
  loose: string[];
  /** Error code if the destination is not available. Null if the check succeeded. */
  problem: string | null;
  /** Snapshots that contain the file's bytes, oldest first. */
  snapshots: HoldingSnapshot[];
}

/** The `backup prune` result. */
export interface BackupPruneReport {
  /** Blobs that were removed, because no remaining snapshot contains them. */
  blobs_removed: number;
  /** Their total size, in bytes. */
  bytes_removed: number;
  /** Reason why the run failed after its start. */
  error?: BackupError | null;
  /** Remaining snapshots, by id. */
  kept: string[];
  /** Removed snapshots, by id. */
  removed: string[];
}

/** The `backup create` result. */
export interface BackupReport {
  /** Blobs that this run copied or linked. */
  copied: number;
  /** Their total size, in bytes. */
  copied_bytes: number;
  /** Reason why the run failed. Copied blobs stay at the destination, and the next run continues from there. */
  error?: BackupError | null;
  /** The first blobs that are damaged in the store. */
  faults: BackupFault[];
  /** Blobs that an earlier snapshot already contains. */
  reused: number;
  /** The snapshot. Absent if the run failed. */
  snapshot?: Snapshot | null;
}

/** The `backup restore` result. */
export interface BackupRestoreReport {
  /** Damaged records in the snapshot. Their files were not restored. */
  damaged_records: number;
  /** Reason why the run failed after its start. */
  error?: BackupError | null;
  /** Files with bytes that are missing or cannot be compared. */
  failed: number;
  /** The first of these files. */
  faults: BackupFault[];
  /** API keys and signing secrets of a restored snapshot. Absent if only files were restored. */
  keys?: RestoredKeys | null;
  /** Files that stay at their providers, and were compared there. */
  left_at_providers: number;
  /** Files that the store already has. They do not change. */
  present: number;
  /** Files with restored and compared bytes. */
  restored: number;
  /** Total restored bytes. */
  restored_bytes: number;
}

/** The `backup verify` result. */
export interface BackupVerifyReport {
  /** Blobs that were read. */
  checked: number;
  /** Their total size, in bytes. */
  checked_bytes: number;
  /** True if the database copy is intact. */
  database_ok: boolean;
  /** Reason why the run failed after its start. */
  error?: BackupError | null;
  /** The first missing or damaged blobs. */
  faults: BackupFault[];
  /** Missing blobs. */
  missing: number;
  /**
   * True if the snapshot is intact, and the store was complete at the snapshot time (`damaged` and `damaged_records`
   * are 0).
   */
  ok: boolean;
  /** Damaged blobs that were moved aside within the destination. The next snapshot copies these blobs again. */
  set_aside: number;
  /** The snapshot. */
  snapshot: Snapshot;
  /** Blobs that are damaged or cannot be read. */
  wrong: number;
}

/** A binding, in listings and in the reply to its creation. */
export interface BindingReply {
  /** Creation time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  effectiveFrom: string;
  /** Termination time in RFC 3339. Null while the binding is active. */
  effectiveTo: string | null;
  /** Binding id. */
  id: number;
  /** True while the binding is active. */
  isActive: boolean;
  /** Organization number. */
  organizationId: number;
  /** Organization name. */
  organizationName: string;
  /** Provider code. */
  storageProvider: string;
  /** If true, the server stores uploads first and copies them in the background. */
  syncEnabled: boolean;
}

/** The reply to an update of a binding. */
export interface BindingUpdateReply {
  /** Binding id. */
  id: number;
  /** True while the binding is active. */
  isActive: boolean;
  /** Organization number. */
  organizationId: number;
  /** Provider code. */
  storageProvider: string;
  /** If true, the server stores uploads first and copies them in the background. */
  syncEnabled: boolean;
}

/**
 * The circuit breaker of a provider.
 * - `closed`: The provider answers. Operations pass.
 * - `half_open`: One operation tests the provider. All other operations fail at once.
 * - `open`: The provider does not answer. Operations fail at once until the next test.
 */
export type BreakerState = 'closed' | 'half_open' | 'open' | (string & {});

/** The reply to PUT `/files/upload`. */
export interface ChangeReply {
  /** File id. */
  file_id: string;
  /** `NONE` after a promotion. After a replacement, the sync status of the record. */
  sync_status: SyncStatus;
  /** Change time, in RFC 3339 (UTC, milliseconds). */
  updated_at: string;
}

/**
 * The result of one step of a provider check.
 * - `ok`: The step succeeded.
 * - `cannot`: The provider does not offer this, and filestore works without it.
 * - `failed`: The provider offers this, but the step failed.
 * - `skipped`: Not attempted, because an earlier step failed.
 */
export type CheckOutcome = 'ok' | 'cannot' | 'failed' | 'skipped' | (string & {});

/** The body for POST `/admin/backups/{destination}/create`. Can be absent. */
export interface CreateBackup {
  /** If true, the reply is 202 with the destination, and the run continues without the client. */
  detach?: boolean;
  /** If true, use hard links instead of copies. A failing disk then also damages the snapshot. */
  hard_links?: boolean;
  /** If true, only list files at providers, without a copy of their bytes. */
  local_only?: boolean;
}

/** The body for POST `/organization-storage-bindings/create`. */
export interface CreateBinding {
  /** Organization number, 1 to 2^53 − 1. */
  organizationId: number;
  /** Organization name, 1 to 255 characters. */
  organizationName: string;
  /** Provider code, for example `s3-eu`. */
  storageProvider: string;
  /**
   * If true, an upload is stored on the server and copied to the provider later. If false, it goes to the provider
   * before the reply.
   */
  syncEnabled: boolean;
}

/** The body for POST `/admin/keys`. */
export interface CreateKey {
  /** Lifetime in seconds. Without this field, the key does not expire. */
  expires_in_s?: number;
  /** Display name, 1 to 255 characters (default `unnamed`). */
  name?: string;
  /** Organizations that the key can access: 1 to 100 ids, or only `*` for all. */
  organizations: string[];
  /** Scopes: `read`, `write`, `delete`, `admin`. */
  scopes: ('read' | 'write' | 'delete' | 'admin')[];
}

/** The body for POST `/webhooks`. */
export interface CreateWebhook {
  /** The place in the log from which events are sent: `end` (default), `start`, or the id of an event. */
  from?: string;
  /** Display name, at most 200 bytes (default empty). */
  name?: string;
  /** The organization whose events are sent. Without this field, events of all organizations and of the store. */
  organization_id?: string;
  /** Types of events, for example `file.ready` or `file.*`. Without this field, all types. */
  types?: string[];
  /** The URL that gets the events, at most 2048 bytes. By default, only `https://` and public addresses are allowed. */
  url: string;
}

/** The reason why POST `/files/delete` did not delete a file. */
export interface DeleteFileError {
  /** Stable error code, as in a problem document. */
  code: ErrorCode;
  /** Explanation for people. */
  detail: string;
}

/** One file's result in POST `/files/delete`. */
export interface DeleteFileResult {
  /** True if the file is deleted. */
  deleted: boolean;
  /** Error for this file. Null if the file is deleted. */
  error: DeleteFileError | null;
  /** The id from the request. */
  id: string;
  /** True while the record of a deleted file exists. You can restore the file until the purge claims it. */
  purge_pending: boolean;
  /** Location of the bytes until the purge removes them: `LOCAL` or `CLOUD`. Null if the file is not deleted. */
  storage_location: StorageLocation | null;
}

/** The reply to POST `/files/delete`. */
export interface DeleteFilesReply {
  /** One result for each id, in the request order. */
  results: DeleteFileResult[];
}

/** The body for POST `/files/delete`. */
export interface DeleteFilesRequest {
  /** 1 to 1000 file ids. */
  ids: string[];
}

/** The reply to DELETE `/files/{fileId}`. */
export interface DeleteReply {
  /** Always true. */
  deleted: boolean;
  /** File id. */
  fileId: string;
  /** True while the record exists. You can restore the file until the purge claims it. */
  purgePending: boolean;
  /** Location of the bytes until the purge removes them: `LOCAL` or `CLOUD`. */
  storageLocation: StorageLocation;
}

/** The caller that deleted a file. */
export interface DeletedBy {
  /** Key id. */
  key_id?: string | null;
  /** Key name at that time. */
  key_name?: string | null;
  /** `key`, `open_mode`, `admin_socket`, `library`, `expiry`, `erasure` or `unknown`. */
  kind: string;
}

/** The reply to DELETE `/webhooks/{webhook_id}`. */
export interface DeletedWebhookReply {
  /** Id of the deleted webhook. */
  id: string;
}

/**
 * Behaviour of a browser: show or save the file.
 * - `attachment`: Saves the file to disk.
 * - `inline`: Shows the file, if the type is safe to show.
 */
export type Disposition = 'attachment' | 'inline';

/** The reply to PATCH `/files/{fileId}`. The reply contains the record only if the key has the scope `read`. */
export type EditReply = FileRecord | ChangeReply;

/** The body for PATCH `/webhooks/{webhook_id}`. A missing field leaves a setting unchanged. */
export interface EditWebhook {
  /** Display name. */
  name?: string;
  /** Types of events. An empty list means all types. */
  types?: string[];
  /** The URL that gets the events. */
  url?: string;
}

/** The body for POST `/webhooks/{webhook_id}/enable`. */
export interface EnableWebhook {
  /**
   * The place in the log from which events are sent: `end`, `start`, or the id of an event. Without this field, where
   * the webhook stood.
   */
  from?: string;
}

/** An erasure receipt. */
export interface EraseReceipt {
  /** Removed bindings. */
  bindings: number;
  /** Their total size, in bytes. */
  bytes: number;
  /** True if filestore checked every place and found no data of the organization. If false, run the erasure again. */
  complete: boolean;
  /** Receipt time. */
  ended_at: string;
  /** Removed files. Their variants are removed too. */
  files: number;
  /** Key ids that lost this organization and keep other organizations. */
  keys_narrowed: string[];
  /** Revoked key ids: keys for this organization only. */
  keys_revoked: string[];
  /** Places that can still return data, although the erasure is complete. */
  may_return: MayReturn[];
  /** Erased organization. */
  organization_id: string;
  /** Checked places. */
  places: ErasedPlace[];
  /** Removed replies (of idempotency keys). */
  replies: number;
  /** First run's start time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  started_at: string;
  /** Store id. */
  store_id: string;
}

/** The body for POST `/admin/organizations/{organizationId}/erase`. */
export interface EraseRequest {
  /** The organization id again, as in the path. This protects against a wrong path. */
  confirm: string;
}

/** A place that an erasure has checked. */
export interface ErasedPlace {
  /** True if the place contains no data of the organization. */
  absent: boolean;
  /** Remaining data, or the reason why the check failed. Empty if `absent` is true. */
  detail: string;
  /** Provider code, or `LOCAL`, `database`, `keys`, `quarantine`. */
  place: string;
}

/**
 * The error code in a problem document.
 *
 * A code never changes its meaning. A later server can send new codes.
 * - `invalid_field`: A field, parameter or header has an invalid value. See `field`.
 * - `missing_field`: A required field is missing.
 * - `unknown_field`: The endpoint does not know this field or key.
 * - `repeated_field`: A field or key occurs more than once.
 * - `malformed_body`: The body does not match its type, for example incomplete multipart or invalid JSON.
 * - `unauthorized`: The key is missing or invalid.
 * - `forbidden`: The key does not have the scope or the organization, or a field differs from the signed URL. For an
 * open server: a page of another site sent the request, or an administrative request came from outside.
 * - `signature_invalid`: The signature of the URL is not valid for this request.
 * - `signature_expired`: The signed URL has expired.
 * - `signature_used`: The signed URL was already used for an upload, or an upload with it is running.
 * - `not_found`: The file does not exist, or the caller has no access.
 * - `invalid_transition`: The state does not allow this change. See `from`, `to` and `allowed`.
 * - `conflict`: Another request changed the file or binding at the same time. Also: the migration does not match the
 * binding, another migration is running, the key is revoked, or the maximum number of keys exists.
 * - `already_purging`: The purge has claimed the file. You can no longer restore it.
 * - `binding_required`: `require_binding` is set, and the organization has no active binding.
 * - `binding_already_active`: The organization already has an active binding.
 * - `no_active_binding`: The organization has no active binding, or no binding to resume.
 * - `unknown_provider`: The provider code is unknown. See `allowed`.
 * - `provider_inactive`: The provider accepts no new files.
 * - `provider_unavailable`: The provider of the file fails or is not configured.
 * - `precondition_failed`: A precondition failed, for example `If-Match`.
 * - `idempotency_mismatch`: The idempotency key was used for other content.
 * - `idempotency_in_progress`: Another request with this idempotency key is still running.
 * - `digest_mismatch`: The bytes do not match the SHA-256 digest.
 * - `events_gone`: The log of events no longer has this event, or is a new log. Read the records again, then follow the
 * log from its end.
 * - `events_off`: Events are switched off in this store.
 * - `url_refused`: The server's configuration does not allow the URL or address of a webhook.
 * - `too_large`: A file, batch or body exceeds its limit.
 * - `too_many_items`: A batch has too many files, or a deletion too many ids.
 * - `quota_exceeded`: The organization exceeds its quota.
 * - `not_an_image`: The file is not an image, so it has no variants.
 * - `conversion_failed`: The converter could not make an image from the file.
 * - `corrupt_image`: The image is damaged.
 * - `image_too_large`: The image exceeds the limits of pixels or memory.
 * - `body_timeout`: The client stopped sending.
 * - `upload_offset_mismatch`: The request starts at another offset than the resumable upload. See the header
 * `Upload-Offset`.
 * - `upload_length_inconsistent`: The request names another length of the resumable upload than an earlier request.
 * - `upload_length_exceeded`: The request has more bytes than the announced length of the resumable upload.
 * - `upload_superseded`: A newer request for the same resumable upload ended this request.
 * - `upload_final`: The resumable upload takes its bytes from other uploads.
 * - `upload_gone`: The resumable upload has failed or expired, or its file was deleted.
 * - `upload_stalled`: The client stopped sending. The received bytes of the resumable upload are kept.
 * - `upload_elsewhere`: Another server has the bytes of the resumable upload.
 * - `too_many_uploads`: Too many resumable uploads are open, or they hold too many bytes.
 * - `checksum_mismatch`: The bytes of the request do not match `Upload-Checksum`.
 * - `busy`: A queue or budget is full. Try again later.
 * - `outcome_unknown`: The database did not answer to a change. The change may or may not be stored.
 * - `storage_full`: The disk is full. You can still delete files.
 * - `database_full`: The disk of the database server is full. The server cannot store, change or delete anything.
 * - `locked`: Another process uses the data directory.
 * - `unusable`: The server cannot use the data directory, the configuration or the database.
 * - `record_damaged`: The record of the file is damaged. Repair or restore it.
 * - `internal`: The server or its disk has a fault. See the log.
 * - `malformed_request`: The server does not accept the HTTP request, for example without or with several `Host`
 * headers.
 * - `misdirected_request`: The request names the host of another server. An open server answers only to its own hosts.
 * - `not_ready`: The database or the storage does not answer (readiness check).
 * - `rate_limited`: The client sends too many requests. Wait for `Retry-After`.
 * - `method_not_allowed`: The path does not allow this method. See `allowed`.
 * - `not_implemented`: The request uses a part of HTTP that the server does not have, for example a transfer coding
 * other than `chunked`. See `allowed`.
 * - `unsupported_media_type`: The body has an unsupported media type or content encoding. See `allowed`.
 * - `unsupported_version`: The request names a version of an upload protocol that the server does not speak.
 * - `length_required`: The creation of a resumable upload neither names nor defers the length.
 * - `range_not_satisfiable`: The range contains no byte of the file.
 */
export type ErrorCode =
  | 'invalid_field'
  | 'missing_field'
  | 'unknown_field'
  | 'repeated_field'
  | 'malformed_body'
  | 'unauthorized'
  | 'forbidden'
  | 'signature_invalid'
  | 'signature_expired'
  | 'signature_used'
  | 'not_found'
  | 'invalid_transition'
  | 'conflict'
  | 'already_purging'
  | 'binding_required'
  | 'binding_already_active'
  | 'no_active_binding'
  | 'unknown_provider'
  | 'provider_inactive'
  | 'provider_unavailable'
  | 'precondition_failed'
  | 'idempotency_mismatch'
  | 'idempotency_in_progress'
  | 'digest_mismatch'
  | 'events_gone'
  | 'events_off'
  | 'url_refused'
  | 'too_large'
  | 'too_many_items'
  | 'quota_exceeded'
  | 'not_an_image'
  | 'conversion_failed'
  | 'corrupt_image'
  | 'image_too_large'
  | 'body_timeout'
  | 'upload_offset_mismatch'
  | 'upload_length_inconsistent'
  | 'upload_length_exceeded'
  | 'upload_superseded'
  | 'upload_final'
  | 'upload_gone'
  | 'upload_stalled'
  | 'upload_elsewhere'
  | 'too_many_uploads'
  | 'checksum_mismatch'
  | 'busy'
  | 'outcome_unknown'
  | 'storage_full'
  | 'database_full'
  | 'locked'
  | 'unusable'
  | 'record_damaged'
  | 'internal'
  | 'malformed_request'
  | 'misdirected_request'
  | 'not_ready'
  | 'rate_limited'
  | 'method_not_allowed'
  | 'not_implemented'
  | 'unsupported_media_type'
  | 'unsupported_version'
  | 'length_required'
  | 'range_not_satisfiable'
  | (string & {});

/** One change. An event has no name, metadata, digest or caller: ask for the file's record. */
export interface LogEvent {
  /** The ids and facts. The type decides which members are there. */
  data: EventData;
  /** Event id: 22 characters. Pass it as `after` to read on. */
  id: string;
  /** Time of the change, in RFC 3339 (UTC, milliseconds). */
  timestamp: string;
  /** Type of the change. */
  type: EventType;
}

/** The ids and facts of an event. The type decides which members are there. */
export interface EventData {
  /** Number of failed attempts. */
  attempts?: number | null;
  /** The kind of caller that deleted the file, for example `key`. Never the key. */
  by?: string | null;
  /** Byte count. */
  bytes?: number | null;
  /** Edited parts of the record: `name`, `type`, `metadata`. */
  changed?: string[];
  /** File id. */
  file_id?: string | null;
  /** File count. */
  files?: number | null;
  /** Code of the provider that stored the file before. */
  from?: string | null;
  /** Id of the API key. */
  key_id?: string | null;
  /** Time since which the log was off, in RFC 3339 (UTC, milliseconds). */
  off_since?: string | null;
  /** True if a run ended well, a finding was repaired, or a binding is active. */
  ok?: boolean | null;
  /** Organization id. */
  organization_id?: string | null;
  /** A word for the result or the reason, for example the kind of a finding. */
  reason?: string | null;
  /** Status of the file. */
  status?: Status | null;
  /** Sub-system of the file. */
  sub_system?: string | null;
  /** Code of the provider that stores the file now, or of the binding's provider. */
  to?: string | null;
  /** Content version of the file after the change. */
  version?: number | null;
  /** Id of the webhook. */
  webhook_id?: string | null;
}

/** One page of the log of events. */
export interface EventPage {
  /** The events, oldest first, or newest first with `order=desc`. */
  events: LogEvent[];
  /** True if more events follow at once. The page can be empty nevertheless. */
  more: boolean;
  /**
   * The place behind this page: pass this value as `after` (with `order=desc` as `before`). Never null, also if the
   * page has no events.
   */
  next: string;
}

/**
 * The type of an event: what happened.
 * - `file.uploaded`: A file was uploaded. One event for each file of a batch. `data` has `status`.
 * - `file.put_back`: A restore from a snapshot put the file back. `data` has `status`.
 * - `file.thumbnail`: A TEMP file became a THUMBNAIL.
 * - `file.ready`: A file became READY.
 * - `file.replaced`: A file got new bytes, and a new version.
 * - `file.edited`: Name, type or custom metadata were edited. `data` has `changed`.
 * - `file.deleted`: A file was deleted by a request. `data` has `by`.
 * - `file.expired`: A TEMP file expired.
 * - `file.restored`: A deleted file was restored. `data` has `status`.
 * - `file.purged`: The bytes and the record of a deleted file are gone.
 * - `file.synced`: A file was copied to its organization's provider, which serves it from now on. `data` has `from`,
 * `to`.
 * - `file.migrated`: A file moved to another holder. `data` has `from`, `to`.
 * - `file.sync_failed`: All attempts to copy a file failed. `data` has `attempts`.
 * - `file.damaged`: A check found bytes of a live file missing or wrong. `data` has `reason`, `ok` (repaired).
 * - `organization.erased`: An organization was erased. `data` has `files`, `bytes`.
 * - `binding.created`: An organization was bound to a provider. `data` has `to`.
 * - `binding.changed`: A binding was changed or ended. `data` has `to`, `ok` (active).
 * - `key.created`: An API key was created. `data` has `key_id`.
 * - `key.rotated`: An API key got a new secret. `data` has `key_id`.
 * - `key.changed`: The scopes, organizations or lifetime of an API key changed. `data` has `key_id`.
 * - `key.revoked`: An API key was revoked. `data` has `key_id`.
 * - `webhook.disabled`: A webhook gets no more events. `data` has `webhook_id` and `reason`.
 * - `webhook.enabled`: A webhook gets events again. `data` has `webhook_id`.
 * - `fsck.ended`: A check of the store ended. `data` has `reason` (`asked` or `scrub`), `files`, `ok` (nothing was
 * found).
 * - `backup.ended`: A backup ended, or failed. `data` has `reason` (name of the destination, if it has one), `ok`.
 * - `migration.ended`: A migration of an organization ended. `data` has `to`, `files`, `ok` (no file is left).
 * - `log.gap`: Changes before this event can lack their events. `data` has `off_since`.
 */
export type EventType =
  | 'file.uploaded'
  | 'file.put_back'
  | 'file.thumbnail'
  | 'file.ready'
  | 'file.replaced'
  | 'file.edited'
  | 'file.deleted'
  | 'file.expired'
  | 'file.restored'
  | 'file.purged'
  | 'file.synced'
  | 'file.migrated'
  | 'file.sync_failed'
  | 'file.damaged'
  | 'organization.erased'
  | 'binding.created'
  | 'binding.changed'
  | 'key.created'
  | 'key.rotated'
  | 'key.changed'
  | 'key.revoked'
  | 'webhook.disabled'
  | 'webhook.enabled'
  | 'fsck.ended'
  | 'backup.ended'
  | 'migration.ended'
  | 'log.gap'
  | (string & {});

/** A fact about a file. */
export interface ExplainedFact {
  /** Stable code for programs, for example `provider_down`. */
  code: string;
  /** Number of blobs or attempts. */
  count?: number | null;
  /** Error text, for people. */
  error?: string | null;
  /** Code of the provider that the fact is about. */
  provider?: string | null;
  /** Sentence for people, without times. */
  sentence: string;
  /** Start of the fact. */
  since?: string | null;
  /** End of the fact, if known. filestore can extend a lease or a hold. */
  until?: string | null;
}

/** The events of a file among the newest 2,000 events of its organization. */
export interface ExplainedHistory {
  /** False if events are switched off in this store. Then there are no events. */
  enabled: boolean;
  /** Events of the file, oldest first. `log.gap` marks a time without events. */
  events: LogEvent[];
  /** Number of events of the organization that were looked through, at most 2,000. */
  looked_at: number;
  /** True if the history begins with the upload of the file and has no gap. */
  whole: boolean;
}

/** The state of an explained file, as in its record. */
export interface ExplainedRecord {
  /** `SYSTEM_PURGE` if the file is deleted. Null for other files. */
  purge_status: PurgeStatus | null;
  /** Lifecycle status. */
  status: Status;
  /** Side that serves the content. */
  storage_location: StorageLocation;
  /** Sub-system: an area of your application, for example `invoices`. */
  sub_system: string;
  /** Progress towards the provider of the organization. */
  sync_status: SyncStatus;
  /** Content version. */
  version: number;
}

/** A next step of a file. */
export interface ExplainedStep {
  /** Number of the attempt, starting at 1. */
  attempt?: number | null;
  /** Stable code for programs, for example `purge`. */
  code: string;
  /** Number of attempts after which filestore gives up. */
  max_attempts?: number | null;
  /** Earliest time at which the background work takes the step. Absent if no time starts the step. */
  not_before?: string | null;
  /** Code of the provider at which the step happens. */
  provider?: string | null;
  /** Sentence for people, without times. */
  sentence: string;
  /** Effects of the step. */
  then: ExplainedFact[];
  /** Command that prevents the step, for example `restore`. */
  undo?: string | null;
  /** Obstacles. After `not_before`, the step waits until all of them are gone. */
  waits_for: ExplainedFact[];
}

/**
 * The reply to GET `/files/{fileId}/explain`: where a file is and why, what comes next, which attempts failed, and
 * which events the log has of the file. Times are in RFC 3339 (UTC, milliseconds), for example
 * `2026-11-21T08:15:30.123Z`.
 */
export interface Explanation {
  /** Time of the explanation. */
  explained_at: string;
  /** File id. */
  file_id: string;
  /** Events of the file. Events of the last second can be missing. */
  history: ExplainedHistory;
  /** Next steps: first the step of the file itself, then the removal of replaced content. */
  next: ExplainedStep[];
  /** Organization that owns or owned the file. */
  organization_id: string;
  /** Time at which the purge removed the record. Null if the file is not purged. */
  purged_at: string | null;
  /** The stored file. Null if the file is purged. */
  record: ExplainedRecord | null;
  /** Failed attempts. */
  tried: ExplainedFact[];
  /**
   * Places that store bytes of the file, first the place of the current content. For a purged file, places from which
   * the bytes were removed.
   */
  where: ExplainedFact[];
  /** Reasons for the place and the state. */
  why: ExplainedFact[];
}

/** The reply about a file if the key can change the file but not read it. */
export interface FileIdReply {
  /** File id. */
  file_id: string;
}

/** A file's record, from uploads, listings and `info`. */
export interface FileRecord {
  /**
   * True if the sync worker is going to copy the file to a provider, or copies it now. If false, a `PENDING` file is
   * stored where it stays, and becomes `NONE` within seconds. Null if the server does not know.
   */
  awaits_copy: boolean | null;
  /** Upload time in RFC 3339 (UTC, milliseconds). */
  created_at: string;
  /** Deletion time in RFC 3339 (UTC, milliseconds). Null if the file is not deleted. */
  deleted_at: string | null;
  /** Expiry time of a `TEMP` file in RFC 3339. Null for other files. */
  expires_at: string | null;
  /** File name extension in lower case, without the dot. Can be empty. */
  ext: string;
  /** File id: a ULID of 26 upper-case characters, for example `01JD8QZ4T6X3M2V9B7K5N1R0CE`. */
  file_id: string;
  /** The current blob's storage key. Each replacement creates a new storage key. */
  file_path: string;
  /** Content size, in bytes. */
  file_size: number;
  /** Displayed height in pixels. Null if the file is not an image. */
  height: number | null;
  /** Custom metadata: a JSON object that your application keeps with the file. Empty if there is none. */
  metadata: Record<string, unknown>;
  /** Media type, for example `image/jpeg`. */
  mime_type: string;
  /** Organization that owns the file. */
  organization_id: string;
  /** File name from the uploader, for example `photo.jpg`. */
  original_name: string;
  /**
   * Earliest time at which the purge can remove a deleted file, in RFC 3339. Null for other files. You can restore the
   * file until the purge claims the file.
   */
  purge_due_at: string | null;
  /** `SYSTEM_PURGE` if the file is deleted. Null for other files. */
  purge_status: PurgeStatus | null;
  /** SHA-256 digest, 64 lower-case hexadecimal digits. */
  sha256: string;
  /** Lifecycle status: `TEMP`, `THUMBNAIL` or `READY`. */
  status: Status;
  /** `LOCAL` if the server sends the bytes, `CLOUD` if the server redirects to the provider. */
  storage_location: StorageLocation;
  /** Code of the provider that stores the bytes, for example `LOCAL`. */
  storage_provider: string;
  /** Sub-system: an area of your application, for example `invoices`. */
  sub_system: string;
  /** Failed attempts to copy the current content to the organization's provider. */
  sync_attempts: number;
  /** Reason why the last of these attempts failed, for people. Null if no attempt failed. */
  sync_error: string | null;
  /** Progress towards the organization's provider. */
  sync_status: SyncStatus;
  /**
   * ThumbHash of an image in base64, a blurred placeholder for galleries. Null for other files, and before filestore
   * makes the first variant.
   */
  thumbhash: string | null;
  /** Last change time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  updated_at: string;
  /** Content version: 1 after the upload, plus 1 for each replacement. */
  version: number;
  /** Displayed width in pixels. Null if the file is not an image. */
  width: number | null;
}

/**
 * Fit of a picture in the square of a variant.
 * - `cover`: Fills the square. Both sides of the longer dimension are cut off evenly.
 * - `inside`: Keeps the whole picture and the aspect ratio. The result is square only if the picture is.
 */
export type Fit = 'cover' | 'inside';

/** The body for POST `/admin/backups/{destination}/forget`. */
export interface ForgetBackups {
  /** Directory id, from a receipt. If absent, forget all directories that no longer exist. */
  destination_id?: string;
}

/** A problem that a check found. */
export interface FsckFinding {
  /** The repair, or the reason why it failed. Empty if no repair was attempted. */
  action?: string;
  /** Explanation for people. */
  detail: string;
  /** Id of the affected file, if known. */
  file_id?: string | null;
  /** Kind, for example `missing_bytes`. */
  kind: string;
  /** Name at that place: a storage key, a row or a total. */
  name: string;
  /** `shown` (only reported), `repaired` or `failed`. */
  outcome: string;
  /** Place: a provider code, `LOCAL`, `database`, `staging` or `variants`. */
  place: string;
}

/** The check result. */
export interface FsckReport {
  /** Bytes that were read and compared. */
  checked_bytes: number;
  /** Checked records. */
  checked_files: number;
  /** Checked names: blobs, staged files, and files with cached variants. */
  checked_names: number;
  /** True if the check looked at everything and found no problem. */
  clean: boolean;
  /** True if the check reads every byte. */
  deep: boolean;
  /** End time. Null if the check was stopped. You can then resume it. */
  ended_at: string | null;
  /** The first findings, at most 10,000, most serious kinds first. */
  findings: FsckFinding[];
  /** Finding count. */
  found: number;
  /** Findings of each kind. */
  found_by_kind: Record<string, number>;
  /** Things that no check covers. */
  not_looked_at: string[];
  /** Providers that could not be checked, with the reason. */
  postponed: Record<string, string>;
  /** True if the check repairs or quarantines findings. */
  repair: boolean;
  /** Repaired or quarantined findings of each kind. */
  repaired_by_kind: Record<string, number>;
  /** True if this run resumed an earlier check. */
  resumed: boolean;
  /** Start time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  started_at: string;
}

/** The body for POST `/admin/fsck/run`. */
export interface FsckRunRequest {
  /** Maximum read rate, in bytes per second. Unlimited if absent. */
  bytes_per_second?: number;
  /** If true, read every byte and compare digests. If false, compare names and sizes. */
  deep?: boolean;
  /** If true, the reply is 202 with the status, and the check continues without the client. */
  detach?: boolean;
  /** Check only this provider's blobs. All if absent. */
  provider_code?: string;
  /** If true, repair or quarantine the findings. If false, only report them. */
  repair?: boolean;
  /** If true, start again, even if you could resume an unfinished check. */
  restart?: boolean;
}

/** A running check. */
export interface FsckRunning {
  /** Bytes read so far. */
  checked_bytes: number;
  /** Checked records so far. */
  checked_files: number;
  /** Checked names so far. */
  checked_names: number;
  /** Findings so far. */
  found: number;
  /** Current part: `files`, `blobs`, `leftovers`, `variants` or `totals`. */
  part: string;
  /** True for a scrub in the background, false for a requested check. */
  scrub: boolean;
}

/** The reply to GET `/admin/fsck/status`. */
export interface FsckStatus {
  /** The last requested check. */
  last: FsckSummary | null;
  /** The running check, if there is one. */
  running: FsckRunning | null;
  /** The last scrub in the background. */
  scrub: FsckSummary | null;
}

/** The last check's result, as numbers. */
export interface FsckSummary {
  /** Bytes that were read and compared. */
  checked_bytes: number;
  /** Checked records. */
  checked_files: number;
  /** True if the check read every byte. */
  deep: boolean;
  /** End time. Null if the check was stopped or is still running. */
  ended_at: string | null;
  /** Finding count. */
  found: number;
  /** Providers that could not be checked. */
  postponed: string[];
  /** Repaired or quarantined findings. */
  repaired: number;
  /** Start time, in RFC 3339 (UTC, milliseconds). */
  started_at: string;
}

/** The reply to GET `/health-checks`. */
export interface HealthReply {
  /** A sentence for people, for example `filestore is running`. */
  message: string;
}

/** A snapshot that contains the file's bytes. */
export interface HoldingSnapshot {
  /** Snapshot time. */
  created_at: string;
  /** Planned removal time. Null, because only an operator removes snapshots. */
  pruned_at: string | null;
  /** SHA-256 digests in the snapshot. */
  sha256: string[];
  /** Snapshot id. */
  snapshot_id: string;
}

/** An API key, without its secret. */
export interface KeyReply {
  /** Creation time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  created_at: string;
  /** Expiry time in RFC 3339. Null if the key does not expire. */
  expires_at: string | null;
  /** Key id. */
  id: string;
  /** Time of the last request with the key, rounded to minutes. Null if the key was never used. */
  last_used_at: string | null;
  /** Display name. */
  name: string;
  /** Time until which the secret before the last rotation is valid. Null if that secret is refused. */
  old_valid_until: string | null;
  /** Organizations that the key can access. Only `*` means all. */
  organizations: string[];
  /** Revocation time. Null if the key is not revoked. */
  revoked_at: string | null;
  /** Last rotation time. Null if the key was never rotated. */
  rotated_at: string | null;
  /** Scopes: `read`, `write`, `delete`, `admin`. */
  scopes: string[];
}

/** A page from a listing. */
export interface ListReply {
  /** This page's records, in the order of the query. */
  items: FileRecord[];
  /** Cursor for the next page: pass this value as `cursor`. Null on the last page. */
  next_cursor: string | null;
}

/** A place that can still return an erased organization's data. */
export interface MayReturn {
  /** The reason, and how to end it. */
  detail: string;
  /** `shared caches`, `presigned URLs`, a place from `places`, or `backup` and a destination. */
  place: string;
  /** Time from which the place returns no data. Null if no time limit exists. */
  until: string | null;
}

/** Optional service features. */
export interface MeFeatures {
  /** True if `?animated=true` returns animated variants. */
  animated: boolean;
  /**
   * Media types of the configured converters, for example `application/pdf`: files of these types have variants too.
   */
  converted_types: string[];
  /** True if POST `/uploads` creates resumable uploads. */
  resumable: boolean;
}

/** A request's key, as GET `/me` shows the key. */
export interface MeKey {
  /** Expiry time in RFC 3339 (UTC, milliseconds). Null if the key does not expire. */
  expires_at: string | null;
  /** Key id. */
  id: string;
  /** Display name. */
  name: string;
  /** Organizations that the key can access. Only `*` means all. */
  organizations: string[];
  /** Scopes: `read`, `write`, `delete`, `admin`. */
  scopes: string[];
}

/** Service limits. */
export interface MeLimits {
  /** Maximum files in a batch. */
  max_batch_items: number;
  /** Maximum total size of a batch, in bytes. */
  max_batch_size: number;
  /** Maximum file size, in bytes. */
  max_file_size: number;
  /** Maximum ids in one POST `/files/delete` or `/files/restore`. */
  max_ids: number;
  /** Maximum size of a file that POST `/uploads` receives in several requests, in bytes. */
  max_resumable_size: number;
  /** Time between a deletion and the purge, in seconds. You can restore the file until then. */
  purge_grace_secs: number;
  /** Maximum total size of an organization's files, in bytes. Null if there is no limit. */
  quota_bytes: number | null;
  /** Maximum files in an organization. Null if there is no limit. */
  quota_files: number | null;
  /** Lifetime of a temporary file, in seconds. */
  temp_ttl_secs: number;
}

/** The reply to GET `/me`. */
export interface MeReply {
  /** Optional service features. */
  features: MeFeatures;
  /** Key of the request. Null without keys and on the admin socket: then the caller can do everything. */
  key: MeKey | null;
  /** Service limits. */
  limits: MeLimits;
  /** `open` if callers need no key, `keys` if they do. */
  mode: AccessMode;
  /** The store. */
  store: MeStore;
}

/** The store behind a service, as GET `/me` shows the store. */
export interface MeStore {
  /** Store id. */
  id: string;
  /** Service version, for example `0.2.0`. */
  version: string;
}

/** An organization's files with one status at one provider. */
export interface MigrateHolding {
  /** True if the provider is in the configuration. */
  available: boolean;
  /** Total size, in bytes. */
  bytes: number;
  /** File count. */
  files: number;
  /** Code of the provider that stores the bytes. */
  provider_code: string;
  /** File status. */
  status: Status;
}

/** A migration plan. */
export interface MigratePlan {
  /** The files' current providers. */
  from: MigrateHolding[];
  /** Their total size, in bytes. */
  move_bytes: number;
  /** Files to move. */
  move_files: number;
  /** Reason why the target accepts no files. Absent if it does. */
  refused?: string | null;
  /** Their total size, in bytes. */
  stay_bytes: number;
  /** `TEMP` and `THUMBNAIL` files, which stay `LOCAL`. */
  stay_files: number;
  /** Their total size, in bytes. */
  there_bytes: number;
  /** `READY` files that are already at the target. */
  there_files: number;
  /** Target provider code. */
  to: string;
}

/** The migration result. */
export interface MigrateReport {
  /** Files that could not be moved. Run the migration again to retry. */
  failed: number;
  /** The first failures, at most 100. */
  failures: WorkFailure[];
  /** Their total size, in bytes. */
  left_bytes: number;
  /** `READY` files that are still at another provider. */
  left_files: number;
  /** Their total size, in bytes. */
  moved_bytes: number;
  /** Moved files. */
  moved_files: number;
  /** True if the migration was stopped. */
  stopped: boolean;
}

/** The body for POST `/admin/migrate/run`. */
export interface MigrateRunRequest {
  /** Maximum read rate, in bytes per second. Unlimited if absent. */
  bytes_per_second?: number;
  /** If true, the reply is 202 with the status, and the migration continues without the client. */
  detach?: boolean;
  /** Organization number. */
  organizationId: number;
  /** Target code: the active binding's provider. */
  to: string;
}

/** A running migration. */
export interface MigrateRunning {
  /** Bytes moved so far. */
  bytes: number;
  /** Files moved so far. */
  files: number;
  /** Their total size, in bytes. Null before the count. */
  planned_bytes: number | null;
  /** Files to move, counted when the migration began. Null before the count. */
  planned_files: number | null;
  /** Start time in RFC 3339 (UTC, milliseconds). Null for a migration on an older server. */
  started_at: string | null;
  /** Target provider code. */
  to: string;
}

/** The providers of an organization's files. */
export interface MigrateStatus {
  /** The active binding's provider code. */
  bound_to: string | null;
  /** Files for each provider and status. */
  holdings: MigrateHolding[];
  /** Organization number. */
  organizationId: number;
  /** The running migration, if there is one. */
  running: MigrateRunning | null;
}

/** The body for POST `/admin/migrate/stop`. */
export interface MigrateStopRequest {
  /** Organization number. */
  organizationId: number;
}

/** The `migrate verify` result. */
export interface MigrateVerifyReport {
  /** Their total size, in bytes. */
  checked_bytes: number;
  /** Files that were read. */
  checked_files: number;
  /** `READY` files at other providers, which were not read. */
  elsewhere: number;
  /** Files that cannot be read, or do not match the digest in the record. */
  failed: number;
  /** The first failures, at most 10,000. */
  failures: WorkFailure[];
}

/** The body for POST `/admin/migrate/verify`. */
export interface MigrateVerifyRequest {
  /** Organization number. */
  organizationId: number;
  /** Code of the provider to read from. */
  to: string;
}

/** A new API key with its secret. No other reply shows the secret. */
export interface NewKeyReply {
  /** Creation time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  created_at: string;
  /** Expiry time in RFC 3339. Null if the key does not expire. */
  expires_at: string | null;
  /** Key id. */
  id: string;
  /** The key, for the header `Authorization: Bearer`. */
  key: string;
  /** Time of the last request with the key, rounded to minutes. Null if the key was never used. */
  last_used_at: string | null;
  /** Display name. */
  name: string;
  /** Time until which the secret before the last rotation is valid. Null if that secret is refused. */
  old_valid_until: string | null;
  /** Organizations that the key can access. Only `*` means all. */
  organizations: string[];
  /** Revocation time. Null if the key is not revoked. */
  revoked_at: string | null;
  /** Last rotation time. Null if the key was never rotated. */
  rotated_at: string | null;
  /** Scopes: `read`, `write`, `delete`, `admin`. */
  scopes: string[];
}

/** A webhook with its secret. No other reply shows the secret. */
export interface NewWebhookReply {
  /** Time of the last change of the settings. */
  changed_at: string;
  /** Creation time, in RFC 3339 (UTC, milliseconds). */
  created_at: string;
  /** Since when the webhook is disabled. */
  disabled_at: string | null;
  /** Why the webhook is disabled: `requested`, `gone`, `no_success` or `copied`. */
  disabled_reason: string | null;
  /** Since when the endpoint has accepted no event, although some wait. */
  failing_since: string | null;
  /** Time until which the former secret signs too. Null if it does not. */
  former_secret_until: string | null;
  /** Number of times that the endpoint might have missed events, because the log no longer had them, or has a gap. */
  gaps: number;
  /** Webhook id. */
  id: string;
  /** Time of the last attempt. */
  last_attempt_at: string | null;
  /** Why there was no reply: `dns`, `address_refused`, `url_refused`, `connect`, `timeout` or `broken`. */
  last_error: string | null;
  /** Status of the last reply. */
  last_status: number | null;
  /** Time of the last accepted event. */
  last_success_at: string | null;
  /** Display name. */
  name: string;
  /** Time of the oldest undelivered event. Null if all events were delivered, and in lists. */
  oldest_waiting_at: string | null;
  /** The organization whose events are sent. Null for all. */
  organization_id: string | null;
  /** Time of the next trial, if the endpoint cannot take events now. */
  paused_until: string | null;
  /** The secret for the receiver, `whsec_` with base64. */
  secret: string;
  /** `ok`, `failing` or `disabled`. */
  state: string;
  /** Types of events. Empty for all. */
  types: string[];
  /** The URL that gets the events. */
  url: string;
}

/** The active binding of an organization, in GET `/organizations`. */
export interface OrganizationBinding {
  /** Organization name, from the binding. */
  organization_name: string;
  /** Code of the provider that stores new files, for example `LOCAL`. */
  storage_provider: string;
  /** True if new files are stored locally first and copied in the background. */
  sync_enabled: boolean;
}

/** An organization with its storage usage. */
export interface OrganizationReply {
  /** Active binding. Null if the organization has none: its files are `LOCAL`. */
  binding: OrganizationBinding | null;
  /** Their total size, in bytes. */
  bytes: number;
  /** File count. Temporary files count, and deleted files count until the purge. */
  files: number;
  /** Organization id. */
  organization_id: string;
  /** Maximum total size in bytes. Null if there is no limit. */
  quota_bytes: number | null;
  /** Maximum files. Null if there is no limit. */
  quota_files: number | null;
}

/** The sync queue of one organization. Deleted files do not count. */
export interface OrganizationSyncStatus {
  /** All other files (`NONE` and `SYNCED`): they are where they stay. */
  done: number;
  /** Files with no attempts left. */
  failed: number;
  /** Organization number. */
  organizationId: number;
  /** Files that wait for the sync worker. */
  pending: number;
  /** Files that the sync worker is copying. */
  syncing: number;
}

/** A page from GET `/organizations`. */
export interface OrganizationsReply {
  /** This page's organizations, ordered by id: each has files or an active binding. */
  items: OrganizationReply[];
  /** Cursor for the next page: pass this value as `cursor`. Null on the last page. */
  next_cursor: string | null;
}

/** The body of every error reply: a problem document (RFC 9457). */
export interface ProblemDocument {
  /** Allowed values. */
  allowed?: string[];
  /** Stable error code. Use this field to decide in a program. */
  code: ErrorCode;
  /** Explanation for people. */
  detail: string;
  /** Offset at which the resumable upload continues. Only in replies to the drafts of the IETF. */
  'expected-offset'?: number | null;
  /** Field, parameter or key with the error. */
  field?: string | null;
  /** Current state, if the state does not allow the change. */
  from?: string | null;
  /** Request URN: `urn:request:<request id>`. */
  instance: string;
  /** Index of the batch item with the error, from 0. */
  item?: number | null;
  /** Limit that the request exceeded. Sizes are in bytes. */
  limit?: number | null;
  /** Offset in the request, next to `expected-offset`. */
  'provided-offset'?: number | null;
  /** Request id, as in the header `X-Request-Id` and in the server's log. */
  request_id: string;
  /** HTTP status, for example 404. */
  status: number;
  /** HTTP status in words, for example `Not Found`. For a registered type, the title of that type. */
  title: string;
  /** Requested state, if the state does not allow the change. */
  to?: string | null;
  /**
   * Problem type: `urn:filestore:problem:<code>`. In replies to the drafts of the IETF for resumable uploads, the type
   * that the draft registers, if there is one.
   */
  type: string;
}

/** Work that waits for a provider, with failed work that will be retried. */
export interface ProviderBacklog {
  /** Replaced blobs at the provider. */
  dropped: number;
  /** The oldest job's age, in seconds. Null if no work waits. */
  oldest_secs: number | null;
  /** Deleted files with bytes at the provider. */
  purge: number;
  /** Files to copy to the provider. */
  sync: number;
}

/** The `provider check` result. */
export interface ProviderCheckReport {
  /** True if the provider can store files. */
  can_serve: boolean;
  /** Provider code. */
  provider_code: string;
  /** Check steps, in order. */
  steps: ProviderCheckStep[];
}

/** One provider check step. */
export interface ProviderCheckStep {
  /** Explanation for people, in one line. */
  detail: string;
  /** Step name, for example `write`, `read`, `range` or `presign`. */
  name: string;
  /** Step result. */
  outcome: CheckOutcome;
}

/** A storage provider, visible to every caller. */
export interface ProviderReply {
  /** Provider code, for example `LOCAL` or `s3-eu`. */
  providerCode: string;
  /** The provider's display name. */
  providerName: string;
}

/** The body for POST `/admin/backups/{destination}/prune`. */
export interface PruneBackups {
  /** Snapshots to keep, at least 1. The newest stay. */
  keep: number;
}

/**
 * A purge receipt: a statement that a deleted file is gone. Times are in RFC 3339 (UTC, milliseconds), for example
 * `2026-11-21T08:15:30.123Z`.
 */
export interface PurgeReceipt {
  /** True if every place was checked and does not contain the file's bytes. */
  absent_everywhere: boolean;
  /** Blobs that the purge still has to remove or check again. */
  awaited: AwaitedBlob[];
  /** Results for backup destinations: first the configured destinations, then older destinations with snapshots. */
  backups: BackupLook[];
  /** Upload time. */
  created_at: string;
  /** Deletion time. */
  deleted_at: string;
  /** Caller that deleted the file. */
  deleted_by: DeletedBy;
  /** The purged file's id. */
  file_id: string;
  /** Format version, 1. */
  format: number;
  /**
   * Set if the file is older than the receipts of this store. The receipt does not list bytes that were replaced before
   * this time, and does not search for them.
   */
  history_from?: string | null;
  /** Receipt time. */
  issued_at: string;
  /** Receipt expiry time. Later, the server returns no receipt for this file. */
  kept_until: string;
  /** Organization that owned the file. */
  organization_id: string;
  /** Public key that verifies the signature, 64 hexadecimal digits. */
  public_key: string;
  /** Time at which the purge removed the record. All bytes were absent then, except the blobs in `awaited`. */
  purged_at: string;
  /** Result for the quarantine of the data directory. */
  quarantine: ErasedPlace;
  /** The file's removed blobs, also blobs from before a replacement. */
  removed: RemovedBlob[];
  /** Store id. */
  store_id: string;
  /** Removed blobs that `removed` does not list. */
  unlisted: number;
}

/** The purge run result. */
export interface PurgeReport {
  /** Removed replaced blobs. In a dry run: blobs to remove. */
  blobs_removed: number;
  /** True for a dry run: nothing was changed. */
  dry_run: boolean;
  /** Expired `TEMP` files that were marked as deleted. */
  expired: number;
  /** Files that could not be removed. A later run retries. */
  failed: number;
  /** The first failures, at most 100. */
  failures: WorkFailure[];
  /** True if the purge waits because the clock jumped forward. */
  is_paused: boolean;
  /** Time at which the first grace period ends, in RFC 3339 (UTC, milliseconds). Null if no file waits. */
  next_due_at: string | null;
  /** Files and blobs that wait for a provider, by its code. The provider does not answer or is not configured. */
  postponed: Record<string, number>;
  /** Removed records. In a dry run: records to remove. */
  purged: number;
  /** Their total size, in bytes. */
  purged_bytes: number;
  /** Removed blobs, by the code of their provider. Includes replaced blobs. */
  removed_at: Record<string, number>;
  /** Deleted files within their grace period. */
  waiting: number;
  /** Their total size, in bytes. */
  waiting_bytes: number;
}

/** The body for POST `/admin/purge/run`. */
export interface PurgeRunRequest {
  /** If true, only count the files to purge. */
  dry_run?: boolean;
  /** If true, purge deleted files at once, without their grace period. */
  now?: boolean;
  /** Purge only this organization's files. All if absent. */
  organization_id?: string;
}

/**
 * The purge status of a deleted file.
 * - `SYSTEM_PURGE`: Deleted. The purge removes the bytes and then the record.
 */
export type PurgeStatus = 'SYSTEM_PURGE' | (string & {});

/** The state of a provider in the readiness check. */
export interface ReadyProvider {
  /** Work that waits for the provider. */
  backlog: ProviderBacklog;
  /** Last error since startup, in one line without secrets. */
  last_error?: string | null;
  /** Provider code, for example `s3-eu`. */
  provider_code: string;
  /** The worse breaker state: of reads or of writes. Null if the provider is no longer in the configuration. */
  state: BreakerState | null;
}

/** The reply to GET `/health-checks/ready`. */
export interface ReadyReply {
  /** `ok`, or the reason why the server cannot use the database. */
  database: string;
  /** `ready` or `not ready`. */
  message: string;
  /**
   * Providers of location `CLOUD`. A provider that does not answer does not change readiness: the server still serves
   * all other files.
   */
  providers?: ReadyProvider[];
  /** The last scrub. Only for keys with access to all organizations. A finding does not change readiness. */
  scrub?: FsckSummary | null;
  /** `ok`, or the reason why the server cannot use the storage. */
  storage: string;
}

/** A public key for receipts, from GET `/receipt-keys`. */
export interface ReceiptKeyReply {
  /** Creation time in RFC 3339. */
  created_at: string;
  /** Public key, 64 hexadecimal digits. */
  public_key: string;
  /** Retirement time in RFC 3339: from then on, the key signs no receipts. Null for the current key. */
  retired_at: string | null;
}

/** The reply to POST `/webhooks/{webhook_id}/redeliver`. */
export interface RedeliverReply {
  /** If the range is too long for one request: the `after` of the next request. Otherwise null. */
  next: string | null;
  /** Number of events that are sent again. */
  queued: number;
}

/** The body for POST `/webhooks/{webhook_id}/redeliver`: one event, a range, or all that failed. */
export interface RedeliverWebhook {
  /** The place before the range: `start`, or the id of an event. */
  after?: string;
  /** One event. */
  event_id?: string;
  /** If true, all failed events: the server has made all attempts. */
  failed?: boolean;
  /** The last event of the range. */
  until?: string;
}

/** A removed blob that was then confirmed as absent. */
export interface RemovedBlob {
  /** Time at which the blob was removed and confirmed as absent. */
  absent_at: string;
  /** Last time at which a check found the blob absent. */
  checked_at: string;
  /** The blob's storage key. */
  key: string;
  /** Code of the provider that stored the blob. */
  provider: string;
  /** SHA-256 digest, 64 hexadecimal digits. Null if the write was interrupted. */
  sha256: string | null;
  /** Size in bytes. Null if the write was interrupted. */
  size_bytes: number | null;
}

/** The body for POST `/admin/backups/{destination}/restore`. Names one file, or one organization. */
export interface RestoreBackup {
  /** Restore this file. */
  file_id?: string;
  /** Restore all files for this organization. */
  organization_id?: string;
  /** Snapshot id (default: the newest snapshot). */
  snapshot_id?: string;
}

/** The reason why POST `/files/restore` did not restore a file. */
export interface RestoreFileError {
  /** Stable error code, as in a problem document. */
  code: ErrorCode;
  /** Explanation for people. */
  detail: string;
}

/** One file's result in POST `/files/restore`. */
export interface RestoreFileResult {
  /** Error for this file. Null if the file is not deleted. */
  error: RestoreFileError | null;
  /** The id from the request. */
  id: string;
  /** True if the file is not deleted: restored now or before, or never deleted. */
  restored: boolean;
}

/** The reply to POST `/files/restore`. */
export interface RestoreFilesReply {
  /** One result for each id, in the request order. */
  results: RestoreFileResult[];
}

/** The body for POST `/files/restore`. */
export interface RestoreFilesRequest {
  /** 1 to 1000 file ids. */
  ids: string[];
}

/** The reply to POST `/files/{fileId}/restore`. The reply contains the record only if the key has the scope `read`. */
export type RestoreReply = FileRecord | FileIdReply;

/** API keys and signing secrets that were valid in a snapshot. Some might have been revoked since. */
export interface RestoredKeys {
  /** API keys, oldest first. */
  keys: KeyReply[];
  /** True if the restore revoked all of them. If false, they are valid again. */
  revoked: boolean;
  /** Signing secrets, oldest first. */
  signing_secrets: SigningSecretReply[];
  /** Snapshot time, in RFC 3339 (UTC, milliseconds). */
  taken_at: string;
}

/** A resumable upload, from GET `/uploads/{upload}`, from lists, and from `/admin/uploads`. */
export interface ResumableUpload {
  /** True if the file exists. */
  complete: boolean;
  /** Creation time in RFC 3339 (UTC, milliseconds). */
  created_at: string;
  /** Error code of a failed upload, for example `digest_mismatch`. Null for other uploads. */
  error: string | null;
  /** Time in RFC 3339 at which the upload ends. If the upload has ended, the server forgets it at this time. */
  expires_at: string;
  /** File id. Null until the file exists. */
  file_id: string | null;
  /** File size in bytes. Null if the client has not named the size. */
  length: number | null;
  /** Number of stored bytes. The next request starts at this offset. */
  offset: number;
  /** The file's organization. */
  organization_id: string;
  /** Given file name. Null if the client gave no name. */
  original_name: string | null;
  /** `open`, `completing` (the bytes are here, and the file is being stored), `finished`, `failed` or `expired`. */
  state: string;
  /** Upload id: a ULID of 26 upper-case characters. The URL of the upload has a secret token as well. */
  upload_id: string;
}

/** One page of the resumable uploads of an organization, oldest first. */
export interface ResumableUploadList {
  /** Uploads of this page. */
  items: ResumableUpload[];
  /** Cursor of the next page: pass this value as `cursor`. Null on the last page. */
  next_cursor: string | null;
}

/** The body for POST `/admin/keys/{key_id}/rotate`. */
export interface RotateKey {
  /** Seconds for which the old secret stays valid, 0 to 2592000 (default 0). */
  overlap_s?: number;
}

/** The body for POST `/webhooks/{webhook_id}/rotate`. */
export interface RotateWebhook {
  /** Seconds for which the former secret signs too, 0 to 2592000 (default 86400). */
  overlap_s?: number;
}

/** A cell of a contact sheet. */
export interface SheetCell {
  /** Reason why the cell is empty. Null for a cell with a picture. */
  error: SheetCellError | null;
  /** File id. */
  file_id: string;
  /** Picture height, in pixels. Null for an empty cell. */
  height: number | null;
  /** Picture width, in pixels. Null for an empty cell. */
  width: number | null;
  /** Distance from the left edge of the sheet, in pixels. Null for an empty cell. */
  x: number | null;
  /** Distance from the upper edge of the sheet, in pixels. Null for an empty cell. */
  y: number | null;
}

/** The reason why a cell of a contact sheet is empty. */
export interface SheetCellError {
  /** Stable error code, as in a problem document. */
  code: ErrorCode;
  /** Explanation for people. */
  detail: string;
}

/** The map of a contact sheet, with each file's position. */
export interface SheetMap {
  /** Cells, row by row, in the order of the requested ids. */
  cells: SheetCell[];
  /** Column count. */
  columns: number;
  /** Sheet height, in pixels. */
  height: number;
  /** Row count. */
  rows: number;
  /** Cell side, in pixels. */
  size: 200 | 250 | 300 | 400 | 500 | 700 | 1000;
  /** Sheet width, in pixels. */
  width: number;
}

/**
 * The body for POST `/files/{fileId}/sign`. With `size` you get a URL for a variant, without `size` a URL for the
 * content.
 */
export interface SignRequest {
  /** If true, a variant shows all frames of an animation. Needs `size`. */
  animated?: boolean;
  /** `private` if no shared cache can keep the reply (default `public`). */
  cache?: UrlCache;
  /** `inline` to show the content in a browser, `attachment` to save it. Not for variants. */
  disposition?: Disposition;
  /** URL lifetime in seconds, 1 to 604800 (default 3600). The server rounds up to the end of a window. */
  expires_in_s?: number;
  /** How the picture fits the square (default `cover`). */
  fit?: Fit;
  /** If false, the server sends the content also if a provider has it (default true: a redirect). Not for variants. */
  redirect?: boolean;
  /** Variant size in pixels, for example 400. If absent, the URL leads to the content. */
  size?: 200 | 250 | 300 | 400 | 500 | 700 | 1000;
}

/** The body for POST `/files/sign-upload`. */
export interface SignUploadRequest {
  /** Number of URLs, 1 to 100. Each is for one file. With this field, the reply has `urls`. */
  count?: number;
  /** URL lifetime in seconds, 1 to 604800 (default 3600). The server rounds up to the end of a window. */
  expires_in_s?: number;
  /** Maximum file size in bytes (default: the server limit). */
  max_size?: number;
  /** File media type, for example `image/png`. If absent, the uploader chooses. */
  mime_type?: string;
  /** The new file's organization. */
  organization_id: string;
  /** If true, the URL is for POST `/uploads`, with tus or a draft of the IETF. Otherwise it accepts a form. */
  resumable?: boolean;
  /** The new file's sub-system, for example `avatars`. */
  sub_system: string;
  /** If true, the new file is `TEMP`. */
  upload_temp?: boolean;
}

/**
 * The reply to GET `/files/{fileId}/receipt`: a purge receipt and its signature.
 *
 * The signature covers all members, also members that this version does not know. So keep `receipt` unchanged, and call
 * [`Self::read`] to get the fields.
 */
export interface SignedReceipt {
  /** The receipt. */
  receipt: PurgeReceipt;
  /** Ed25519 signature of the receipt in canonical form, 128 hexadecimal digits. */
  signature: string;
}

/** The reply to POST `/files/{fileId}/sign` and POST `/files/sign-upload`. */
export interface SignedUrlReply {
  /** Expiry time in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  expires_at: string;
  /**
   * The URL to hand out. If the server does not know its public URL, this is a path, for example `/api/v1/files/...`.
   */
  url: string;
  /** All URLs, for a request with `count`. The first is `url`. */
  urls?: string[];
}

/** A secret that signs URLs, from GET `/admin/signing-secrets`. */
export interface SigningSecretReply {
  /** True if the secret is in the configuration, false if it is in the records database. */
  configured: boolean;
  /** Creation time in RFC 3339. Null for a configured secret. */
  created_at: string | null;
  /** Secret name, which each signed URL contains. */
  kid: string;
  /** True for the secret that signs new URLs. */
  signs: boolean;
  /** Expiry time for the secret's URLs in RFC 3339. Null if no expiry is set. */
  valid_until: string | null;
}

/** A finished snapshot. */
export interface Snapshot {
  /** Different blobs in the snapshot. */
  blobs: number;
  /** Their total size, in bytes. */
  bytes: number;
  /** Snapshot time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`. */
  created_at: string;
  /** Blobs that were missing or damaged in the store. */
  damaged: number;
  /** Damaged records. The snapshot does not contain their files. */
  damaged_records: number;
  /** Database copy size, in bytes. */
  database_bytes: number;
  /** Blobs at providers that the snapshot only lists. */
  elsewhere: number;
  /** Records with bytes in the snapshot. */
  files: number;
  /** True if the snapshot only lists files at providers, without their bytes. */
  local_only: boolean;
  /** True if the snapshot is on the store's disk, with hard links to the same files. */
  shares_disk: boolean;
  /** Snapshot id. A later snapshot has a greater id. */
  snapshot_id: string;
  /** Store id in the snapshot. */
  store_id: string;
}

/**
 * The lifecycle status of a file.
 * - `TEMP`: Temporary. Stored locally, and expires.
 * - `THUMBNAIL`: Source of thumbnails. Stored locally, and does not expire.
 * - `READY`: An ordinary file. Stays until you delete it.
 */
export type Status = 'TEMP' | 'THUMBNAIL' | 'READY' | (string & {});

/** A problem, with advice. */
export interface StatusAdvice {
  /** Subject: `database`, `storage`, `disk`, `records`, `blobs`, `checks`, `uploads`, `sync`, or a provider code. */
  about: string;
  /** Kind of the problem, for programs. */
  code: AdviceCode;
  /** Command line of the next step. Null if no single command does it. */
  command: string | null;
  /** Next step for the administrator. */
  next: string;
  /** Organization of the newest file with the problem. Null for problems without a file. */
  organization_id: string | null;
  /** Explanation for people. */
  problem: string;
  /** Code of the provider with the problem. Null for other problems. */
  provider_code: string | null;
}

/** Space on the data directory's disk. */
export interface StatusDisk {
  /** Free space for the service, in bytes. */
  free_bytes: number;
  /** Space that uploads cannot use, in bytes (`reserve_bytes`). */
  reserve_bytes: number;
  /** True if there is space for uploads. */
  takes_uploads: boolean;
  /** File system size, in bytes. */
  total_bytes: number;
}

/** The log of events. */
export interface StatusEvents {
  /** Time of the newest gap, if the log still has its event `log.gap`. */
  gap_at: string | null;
  /** Number of events that readers cannot see yet, because an earlier write is open. 0 with SQLite. */
  held_back: number;
  /** Seconds for which an open write has held them back. */
  held_back_secs: number;
  /** True if changes write events. */
  is_on: boolean;
  /** Number of events that are kept, about. */
  kept: number;
  /** Time of the oldest event, in RFC 3339 (UTC, milliseconds). Null if there is none. */
  oldest_at: string | null;
}

/** A running migration. */
export interface StatusMigration {
  /** Bytes moved so far. */
  bytes: number;
  /** Files moved so far. */
  files: number;
  /** Organization id. */
  organization_id: string;
  /** Their total size, in bytes. Null before the count. */
  planned_bytes: number | null;
  /** Files to move, counted when the migration began. Null before the count. */
  planned_files: number | null;
  /** Start time in RFC 3339 (UTC, milliseconds). Null for a migration on an older server. */
  started_at: string | null;
  /** Target provider code. */
  to: string;
}

/** Purge work. */
export interface StatusPurge {
  /** Deleted files to remove now. */
  due: number;
  /** Replaced blobs to remove now. */
  due_blobs: number;
  /** Their total size, in bytes. */
  due_bytes: number;
  /** Expired `TEMP` files. */
  expired: number;
  /** Time at which the first grace period ends, in RFC 3339 (UTC, milliseconds). Null if no file waits. */
  next_due_at: string | null;
  /** Deleted files within their grace period. */
  waiting: number;
  /** Their total size, in bytes. */
  waiting_bytes: number;
}

/** The reply to GET `/admin/status`. */
export interface StatusReply {
  /** Problems with advice, most serious first. Empty if there is no problem. */
  advice: StatusAdvice[];
  /** Their total size, in bytes. */
  bytes: number;
  /** Checks of the store: the running check and the last results. */
  checks: FsckStatus;
  /** `ok`, or the reason why the server cannot use the database. */
  database: string;
  /** Data directory disk. Null if its size is unknown. */
  disk: StatusDisk | null;
  /** Log of events. Null if the database does not answer. */
  events: StatusEvents | null;
  /** Number of files in the store. Temporary files count, and deleted files count until the purge. */
  files: number;
  /** Running migrations. */
  migrations: StatusMigration[];
  /** Providers with their state, `LOCAL` first. */
  providers: AdminProvider[];
  /** Purge work. */
  purge: StatusPurge;
  /** Resumable uploads. They can wait for their client for a day. */
  resumable: StatusResumable;
  /** `ok`, or the reason why the server cannot use the storage. */
  storage: string;
  /** The store. */
  store: StatusStore;
  /** Files in each sync status. */
  sync: SyncStatusReport;
  /** Uploads without a commit: still arriving, or waiting. */
  unfinished: StatusUnfinished;
  /** Variant cache size. */
  variants: VariantCacheReport;
  /** Webhooks. Null if the database does not answer. */
  webhooks: StatusWebhooks | null;
}

/** Resumable uploads. */
export interface StatusResumable {
  /** Open uploads on all servers. Null if the database does not answer. */
  open: number | null;
  /** Bytes that these uploads hold: announced or received. Null if the database does not answer. */
  open_bytes: number | null;
  /** Resumable uploads to which a request sends bytes now. */
  transfers: number;
}

/** The store of a service. */
export interface StatusStore {
  /** Data directory path. */
  data_dir: string;
  /** Store id. */
  id: string;
  /** Time at which the store was opened, in RFC 3339 (UTC, milliseconds). */
  opened_at: string;
  /** Seconds since that time. */
  uptime_secs: number;
  /** Service version, for example `0.2.0`. */
  version: string;
}

/** Uploads without a commit. */
export interface StatusUnfinished {
  /** Bytes in these files so far. */
  bytes: number;
  /** File count. */
  files: number;
  /** Maximum bytes. */
  max_bytes: number;
  /** Maximum files. */
  max_files: number;
}

/** The webhooks of a store. */
export interface StatusWebhooks {
  /** Disabled webhooks. */
  disabled: number;
  /** Enabled webhooks that accept no event, although some wait. */
  failing: number;
  /** Time since which the worst enabled webhook has accepted no event. Null if no webhook fails. */
  failing_since: string | null;
  /** Number of times that a webhook can have missed events. */
  gaps: number;
  /** Enabled webhooks that accept events, or that no event waits for. */
  ok: number;
  /** Time of the oldest event that waits for a failing webhook. Null if no event waits. */
  oldest_waiting_at: string | null;
}

/**
 * The side that serves the bytes of a file.
 * - `LOCAL`: The server sends the bytes.
 * - `CLOUD`: The server redirects to a provider.
 */
export type StorageLocation = 'LOCAL' | 'CLOUD' | (string & {});

/** A sub-system with its storage usage. */
export interface SubSystemReply {
  /** Their total size, in bytes. */
  bytes: number;
  /** Deleted files, until the purge. `files` and `bytes` include them. */
  deleted: UsageAt;
  /** File count. Temporary files count, and deleted files count until the purge. */
  files: number;
  /** Sub-system, for example `invoices`. */
  sub_system: string;
  /** Temporary files that are not deleted. `files` and `bytes` include them. */
  temp: UsageAt;
}

/** A page from GET `/organizations/{organization_id}/sub-systems`. */
export interface SubSystemsReply {
  /** Sub-systems with files, ordered by name. */
  items: SubSystemReply[];
  /** Cursor for the next page: pass this value as `cursor`. Null on the last page. */
  next_cursor: string | null;
}

/** The counts of all files, or of the queue of one organization. */
export type SyncCounts = SyncStatusReport | OrganizationSyncStatus;

/** The result of `sync enqueue` and `sync retry`. */
export interface SyncQueueReport {
  /** Files that are now `PENDING`. */
  queued: number;
}

/** The body for POST `/admin/sync/enqueue` and `/admin/sync/retry`. */
export interface SyncQueueRequest {
  /** Organization number. If absent, all organizations (only for retry). */
  organizationId?: number;
}

/** The sync run result. */
export interface SyncReport {
  /** Files that could not be copied. A later run retries, except for `FAILED` files. */
  failed: number;
  /** The first failures, at most 100. */
  failures: WorkFailure[];
  /** Files that wait for a provider, by its code. The provider does not answer or is not configured. */
  postponed: Record<string, number>;
  /** Files without work: their status changed from `PENDING` to `NONE`. */
  settled: number;
  /** Files copied to their provider (`SYNCED`). */
  synced: number;
  /** Their total size, in bytes. */
  synced_bytes: number;
  /** Files that still wait: for another run, for the pause after a failure, or for a provider that accepts no files. */
  waiting: number;
}

/**
 * The progress of a file towards the provider of the organization.
 * - `NONE`: No work: the file has no other provider, or is already there.
 * - `PENDING`: Waits for the sync worker.
 * - `SYNCING`: Claimed by the sync worker.
 * - `SYNCED`: Copied, verified and served from the provider.
 * - `FAILED`: All attempts failed. The file is served from its old location.
 */
export type SyncStatus = 'NONE' | 'PENDING' | 'SYNCING' | 'SYNCED' | 'FAILED' | (string & {});

/** The number of files in each sync status. */
export interface SyncStatusReport {
  /** Bytes read for these moves since startup, with failed moves. */
  bytes_copied: number;
  /** Files with no attempts left. */
  failed: number;
  /** Files moved to or between providers since startup. */
  files_moved: number;
  /** Files without work. */
  none: number;
  /** Files that wait for the sync worker. */
  pending: number;
  /** Files at their provider. */
  synced: number;
  /** Files that the sync worker is copying. */
  syncing: number;
}

/** The body for PUT `/organization-storage-bindings/update`. Absent fields do not change. */
export interface UpdateBinding {
  /** `false` ends the binding. `true` resumes the newest binding. */
  isActive?: boolean;
  /** Organization number of the binding to change. */
  organizationId: number;
  /** New organization name, 1 to 255 characters. */
  organizationName?: string;
  /** New provider code. */
  storageProvider?: string;
  /** New sync flag. If true, the server stores uploads first and copies them in the background. */
  syncEnabled?: boolean;
}

/**
 * Caches that can keep the reply to a signed URL.
 * - `public`: Any cache, until the time window ends.
 * - `private`: Only the reader's own cache, which asks each time.
 */
export type UrlCache = 'public' | 'private';

/** Files: number and size. */
export interface UsageAt {
  /** Total size, in bytes. */
  bytes: number;
  /** File count. */
  files: number;
}

/** Files and bytes for each location. */
export interface UsageByLocation {
  /** Figures for files at providers (`CLOUD`). */
  CLOUD: UsageAt;
  /** Figures for files that the server stores (`LOCAL`). */
  LOCAL: UsageAt;
}

/** The reply to GET `/organizations/{organization_id}/usage`. */
export interface UsageReply {
  /** The same figures for each location. */
  by_location: UsageByLocation;
  /** Their total size, in bytes. */
  bytes: number;
  /** Deleted files, until the purge. `files` and `bytes` include them. */
  deleted: UsageAt;
  /** File count. Temporary files count, and deleted files count until the purge. */
  files: number;
  /** Organization id. */
  organization_id: string;
  /** Maximum total size in bytes. Null if there is no limit. */
  quota_bytes: number | null;
  /** Maximum files. Null if there is no limit. */
  quota_files: number | null;
  /** Temporary files that are not deleted. `files` and `bytes` include them. */
  temp: UsageAt;
}

/** The size of the variant cache. */
export interface VariantCacheReport {
  /** Total size of the variants on disk, in bytes. */
  disk_bytes: number;
  /** Variants on disk. */
  disk_entries: number;
  /** Files dropped from the queue since startup, because requests have priority. */
  eager_dropped: number;
  /** Variants made in advance since startup. */
  eager_made: number;
  /** Files that wait for variants in advance (`variants.eager`). */
  eager_waiting: number;
  /** Size of decoded pictures in memory, in bytes. filestore keeps them for further sizes. */
  intermediate_bytes: number;
  /** Total size of the variants in memory, in bytes. */
  memory_bytes: number;
  /** Variants in memory. */
  memory_entries: number;
  /** Removed variants (only for `prune`). */
  removed: number;
}

/** The body for POST `/admin/backups/{destination}/verify`. Can be absent. */
export interface VerifyBackup {
  /** If true, the reply is 202 with the destination, and the run continues without the client. */
  detach?: boolean;
  /** Snapshot id (default: the newest snapshot). */
  snapshot_id?: string;
}

/** An event that an endpoint did not accept at once. */
export interface WebhookFailure {
  /** Time of the next attempt. For `failed`, of the last one. */
  at: string;
  /** Number of attempts that count. */
  attempts: number;
  /** Event id. */
  event_id: string;
  /** File of the event. */
  file_id: string | null;
  /** Status of the last reply. */
  last_status: number | null;
  /** Organization of the event. */
  organization_id: string | null;
  /** `waiting` for its next attempt, `held` behind an earlier event of the same file, or `failed`. */
  state: string;
  /** Type of the event. */
  type: string;
}

/** The reply to GET `/webhooks/{webhook_id}/failures`. */
export interface WebhookFailures {
  /** The failures, oldest first. */
  failures: WebhookFailure[];
  /** The parameter `after` of the next page. Null at the end. */
  next: string | null;
}

/** The result of a ping. */
export interface WebhookPingReply {
  /** True if the endpoint answered with 2xx. */
  delivered: boolean;
  /** Why there was no reply: `dns`, `address_refused`, `url_refused`, `connect`, `timeout` or `broken`. */
  error: string | null;
  /** Status of the reply. */
  status: number | null;
  /** Time that the endpoint took, in milliseconds. */
  took_ms: number;
}

/** A webhook, without its secret. */
export interface WebhookReply {
  /** Time of the last change of the settings. */
  changed_at: string;
  /** Creation time, in RFC 3339 (UTC, milliseconds). */
  created_at: string;
  /** Since when the webhook is disabled. */
  disabled_at: string | null;
  /** Why the webhook is disabled: `requested`, `gone`, `no_success` or `copied`. */
  disabled_reason: string | null;
  /** Since when the endpoint has accepted no event, although some wait. */
  failing_since: string | null;
  /** Time until which the former secret signs too. Null if it does not. */
  former_secret_until: string | null;
  /** Number of times that the endpoint might have missed events, because the log no longer had them, or has a gap. */
  gaps: number;
  /** Webhook id. */
  id: string;
  /** Time of the last attempt. */
  last_attempt_at: string | null;
  /** Why there was no reply: `dns`, `address_refused`, `url_refused`, `connect`, `timeout` or `broken`. */
  last_error: string | null;
  /** Status of the last reply. */
  last_status: number | null;
  /** Time of the last accepted event. */
  last_success_at: string | null;
  /** Display name. */
  name: string;
  /** Time of the oldest undelivered event. Null if all events were delivered, and in lists. */
  oldest_waiting_at: string | null;
  /** The organization whose events are sent. Null for all. */
  organization_id: string | null;
  /** Time of the next trial, if the endpoint cannot take events now. */
  paused_until: string | null;
  /** `ok`, `failing` or `disabled`. */
  state: string;
  /** Types of events. Empty for all. */
  types: string[];
  /** The URL that gets the events. */
  url: string;
}

/** A file that background work could not finish. */
export interface WorkFailure {
  /** Explanation for people. */
  error: string;
  /** File id. */
  file_id: string;
}

/** Every call of the API, by method and path: its parameters, its body and its reply. */
export interface Operations {
  /** List the configured backup destinations */
  'GET /admin/backups': {
    reply: BackupDestination[];
  };
  /** List the snapshots at a destination, oldest first */
  'GET /admin/backups/{destination}': {
    path: {
      /** Name of a configured destination. */
      destination: string;
    };
    reply: Snapshot[];
  };
  /** Take a snapshot of the store */
  'POST /admin/backups/{destination}/create': {
    path: {
      /** Name of a configured destination. */
      destination: string;
    };
    body?: CreateBackup;
    reply: BackupReport | BackupDestination;
  };
  /** Forget backup disks that no longer exist */
  'POST /admin/backups/{destination}/forget': {
    path: {
      /** Name of a configured destination. */
      destination: string;
    };
    body?: ForgetBackups;
    reply: BackupForgetReport;
  };
  /** Remove old snapshots, and keep the newest */
  'POST /admin/backups/{destination}/prune': {
    path: {
      /** Name of a configured destination. */
      destination: string;
    };
    body: PruneBackups;
    reply: BackupPruneReport;
  };
  /** Restore files that are no longer in the store */
  'POST /admin/backups/{destination}/restore': {
    path: {
      /** Name of a configured destination. */
      destination: string;
    };
    body: RestoreBackup;
    reply: BackupRestoreReport;
  };
  /** Read a snapshot and compare every digest */
  'POST /admin/backups/{destination}/verify': {
    path: {
      /** Name of a configured destination. */
      destination: string;
    };
    body?: VerifyBackup;
    reply: BackupVerifyReport | BackupDestination;
  };
  /** Check the whole store */
  'POST /admin/fsck/run': {
    body?: FsckRunRequest;
    reply: FsckReport | FsckStatus;
  };
  /** Read the state of the checks */
  'GET /admin/fsck/status': {
    reply: FsckStatus;
  };
  /** Stop the check of the store */
  'POST /admin/fsck/stop': {
    body?: Record<string, never>;
    reply: FsckStatus;
  };
  /** List API keys, newest first, without their secrets */
  'GET /admin/keys': {
    reply: KeyReply[];
  };
  /** Create an API key */
  'POST /admin/keys': {
    body: CreateKey;
    reply: NewKeyReply;
  };
  /** Revoke a key */
  'POST /admin/keys/{key_id}/revoke': {
    path: {
      /** Key id: a ULID of 26 upper-case characters. */
      key_id: string;
    };
    body?: Record<string, never>;
    reply: KeyReply;
  };
  /** Rotate a key: create a new secret */
  'POST /admin/keys/{key_id}/rotate': {
    path: {
      /** Key id: a ULID of 26 upper-case characters. */
      key_id: string;
    };
    body?: RotateKey;
    reply: NewKeyReply;
  };
  /** Plan a migration, without changes */
  'GET /admin/migrate/plan': {
    query: {
      /** Number of the organization. */
      organizationId: number;
      /** Code of the target provider. */
      to: string;
    };
    reply: MigratePlan;
  };
  /** Move the files of an organization to its provider */
  'POST /admin/migrate/run': {
    body: MigrateRunRequest;
    reply: MigrateReport | MigrateStatus;
  };
  /** Count the files of an organization at each provider */
  'GET /admin/migrate/status': {
    query: {
      /** Number of the organization. */
      organizationId: number;
    };
    reply: MigrateStatus;
  };
  /** Stop the migration of an organization */
  'POST /admin/migrate/stop': {
    body: MigrateStopRequest;
    reply: MigrateStatus;
  };
  /** Read every file at a provider and compare digests */
  'POST /admin/migrate/verify': {
    body: MigrateVerifyRequest;
    reply: MigrateVerifyReport;
  };
  /** Erase an organization */
  'POST /admin/organizations/{organization_id}/erase': {
    path: {
      /** Organization id, as in the field `organization_id` of a file. */
      organization_id: string;
    };
    body: EraseRequest;
    reply: EraseReceipt;
  };
  /** List providers with their state and waiting work */
  'GET /admin/providers': {
    reply: AdminProvider[];
  };
  /** Test a provider with test objects */
  'POST /admin/providers/{code}/check': {
    path: {
      /** Provider code. */
      code: string;
    };
    body?: Record<string, never>;
    reply: ProviderCheckReport;
  };
  /** Purge deleted files after their grace period, or at once */
  'POST /admin/purge/run': {
    body?: PurgeRunRequest;
    reply: PurgeReport;
  };
  /** Sign purge receipts with a new key */
  'POST /admin/receipt-keys/rotate': {
    body?: Record<string, never>;
    reply: ReceiptKeyReply[];
  };
  /** List the secrets that sign URLs */
  'GET /admin/signing-secrets': {
    reply: SigningSecretReply[];
  };
  /** Sign with a new secret */
  'POST /admin/signing-secrets/rotate': {
    body?: Record<string, never>;
    reply: SigningSecretReply[];
  };
  /** Refuse all URLs of a secret at once */
  'POST /admin/signing-secrets/{kid}/revoke': {
    path: {
      /** Secret name. */
      kid: string;
    };
    body?: Record<string, never>;
    reply: SigningSecretReply[];
  };
  /** Read the state of the whole service */
  'GET /admin/status': {
    reply: StatusReply;
  };
  /** Queue all files of an organization that are not at its provider */
  'POST /admin/sync/enqueue': {
    body: Required<Pick<SyncQueueRequest, 'organizationId'>> & SyncQueueRequest;
    reply: SyncQueueReport;
  };
  /** Queue files again after their last attempt failed */
  'POST /admin/sync/retry': {
    body?: SyncQueueRequest;
    reply: SyncQueueReport;
  };
  /** Copy waiting files to their providers */
  'POST /admin/sync/run': {
    body?: Record<string, never>;
    reply: SyncReport;
  };
  /** Count files by sync status */
  'GET /admin/sync/status': {
    query?: {
      /** Only files of this organization. */
      organizationId?: number | undefined;
    };
    reply: SyncCounts;
  };
  /** List the resumable uploads of all organizations, oldest first */
  'GET /admin/uploads': {
    query?: {
      /** Only uploads of this organization. */
      organization_id?: string | undefined;
      /** Maximum number of uploads. */
      limit?: number | undefined;
      /** Cursor of the page. */
      cursor?: string | undefined;
    };
    reply: ResumableUploadList;
  };
  /** Show a resumable upload */
  'GET /admin/uploads/{upload_id}': {
    path: {
      /** Upload id: a ULID of 26 upper-case characters. */
      upload_id: string;
    };
    reply: ResumableUpload;
  };
  /** Cancel a resumable upload */
  'POST /admin/uploads/{upload_id}/cancel': {
    path: {
      /** Upload id: a ULID of 26 upper-case characters. */
      upload_id: string;
    };
    body?: Record<string, never>;
    reply: ResumableUpload;
  };
  /** Empty the variant cache */
  'POST /admin/variants/prune': {
    body?: Record<string, never>;
    reply: VariantCacheReport;
  };
  /** Read the size of the variant cache */
  'GET /admin/variants/status': {
    reply: VariantCacheReport;
  };
  /** Show this document as a web page */
  'GET /docs': {
    reply: string;
  };
  /** Read the log of events, or follow it */
  'GET /events': {
    query?: {
      /** Only events after this one: an id, `start` (the oldest that is kept), or `end` (only later ones). */
      after?: string | undefined;
      /** With `order=desc`: only events before this one, an id or `end`. */
      before?: string | undefined;
      /** Oldest first, or newest first. A stream has the order `asc`. */
      order?: 'asc' | 'desc' | undefined;
      /** Only these types, separated by commas. `file.*` stands for all types that begin with `file.`. */
      types?: string | undefined;
      /** Only events of this organization. */
      organization_id?: string | undefined;
      /** Maximum number of events in a page. A stream ignores it. */
      limit?: number | undefined;
      /** Seconds to wait for the first event, if there is none. A stream ignores it. */
      wait?: number | undefined;
    };
    headers?: {
      /** Id of the last event that a stream has sent. Takes precedence over `after`. Only for streams. */
      'Last-Event-ID'?: string | undefined;
    };
    reply: EventPage;
  };
  /** List records, newest first */
  'GET /files': {
    query?: {
      /** Only files of this organization. */
      organization_id?: string | undefined;
      /** Only files of this sub-system. */
      sub_system?: string | undefined;
      /** Only files with this status. */
      status?: 'TEMP' | 'THUMBNAIL' | 'READY' | undefined;
      /** Only files with this sync status. `sync_error` has the reason of a failure. */
      sync_status?: 'NONE' | 'PENDING' | 'SYNCING' | 'SYNCED' | 'FAILED' | undefined;
      /** Only deleted files. Without this parameter, only files that are not deleted. */
      purge_status?: 'SYSTEM_PURGE' | undefined;
      /** Only files with a name that begins with this text. */
      name_prefix?: string | undefined;
      /** Only files with this media type, for example `image/jpeg`. Parameters are ignored. */
      mime_type?: string | undefined;
      /** Only files uploaded at this time or later (RFC 3339). */
      created_after?: string | undefined;
      /** Only files uploaded before this time (RFC 3339). */
      created_before?: string | undefined;
      /** Only files with a name that contains this text, in upper or lower case. */
      name_contains?: string | undefined;
      /** `newest` first, `oldest` first, or with `purge_status` the latest deletion first (`deleted`). */
      order?: 'newest' | 'oldest' | 'deleted' | undefined;
      /**
       * Only these files, deleted or not, in this order, separated by commas. Goes with no other parameter. The reply
       * leaves out unknown files and files of other organizations.
       */
      ids?: string | readonly string[] | undefined;
      /**
       * Only files with this value in their custom metadata: `metadata.<key>=<value>`, for example
       * `metadata.customer=7`. Up to 16 times.
       */
      [member: `metadata.${string}`]: string | undefined;
      /** Maximum number of items in a page. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. Keep the filters the same. */
      cursor?: string | undefined;
    };
    reply: ListReply;
  };
  /** Upload several files: all or none */
  'POST /files/batch': {
    headers?: {
      /**
       * A name for this request, for example a UUID. If you retry with the same name and content within 24 hours, you
       * get the first reply again.
       */
      'Idempotency-Key'?: string | undefined;
    };
    body: FormData;
    reply: FileRecord[];
  };
  /** Delete up to 1000 files */
  'POST /files/delete': {
    body: DeleteFilesRequest;
    reply: DeleteFilesReply;
  };
  /** Restore up to 1000 deleted files */
  'POST /files/restore': {
    body: RestoreFilesRequest;
    reply: RestoreFilesReply;
  };
  /** Sign a URL to upload one file */
  'POST /files/sign-upload': {
    body: SignUploadRequest;
    reply: SignedUrlReply;
  };
  /** Upload a file */
  'POST /files/upload': {
    headers?: {
      /**
       * A name for this request, for example a UUID. If you retry with the same name and content within 24 hours, you
       * get the first reply again.
       */
      'Idempotency-Key'?: string | undefined;
    };
    body: FormData;
    reply: FileRecord;
  };
  /** Change a file */
  'PUT /files/upload': {
    headers?: {
      /** Entity tags. If the file's tag is not in the list, the server replies 412 and changes nothing. */
      'If-Match'?: string | undefined;
      /** Entity tags. If the file's tag is in the list, the server replies 304. */
      'If-None-Match'?: string | undefined;
      /** HTTP date. If the content is newer, the server replies 412. Ignored together with `If-Match`. */
      'If-Unmodified-Since'?: string | undefined;
    };
    body: FormData;
    reply: ChangeReply;
  };
  /** Download a file */
  'GET /files/{file_id}': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    query?: {
      /** `false`: the server sends the bytes itself, also if a provider has them. */
      redirect?: boolean | undefined;
      /** `attachment` saves the file. `inline` shows the file in the browser, if its type is safe to show. */
      disposition?: 'attachment' | 'inline' | undefined;
      /**
       * SHA-256 digest of the content. If the digest is current, caches can keep the reply for a year. Otherwise the
       * server ignores this parameter.
       */
      v?: string | undefined;
    };
    headers?: {
      /** One range of bytes, for example `bytes=0-499`, `bytes=500-` or `bytes=-500`. */
      Range?: string | undefined;
      /** Entity tags. If the file's tag is not in the list, the server replies 412 and changes nothing. */
      'If-Match'?: string | undefined;
      /** Entity tags. If the file's tag is in the list, the server replies 304. */
      'If-None-Match'?: string | undefined;
      /** HTTP date. If the content is not newer, the server replies 304. Ignored together with `If-None-Match`. */
      'If-Modified-Since'?: string | undefined;
      /** HTTP date. If the content is newer, the server replies 412. Ignored together with `If-Match`. */
      'If-Unmodified-Since'?: string | undefined;
      /**
       * Entity tag or HTTP date of the content that `Range` refers to. If the content has changed, the server sends all
       * bytes.
       */
      'If-Range'?: string | undefined;
    };
    reply: Blob;
  };
  /** Change name, type or custom metadata */
  'PATCH /files/{file_id}': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    headers?: {
      /** Entity tags. If the file's tag is not in the list, the server replies 412 and changes nothing. */
      'If-Match'?: string | undefined;
      /** Entity tags. If the file's tag is in the list, the server replies 304. */
      'If-None-Match'?: string | undefined;
      /** HTTP date. If the content is newer, the server replies 412. Ignored together with `If-Match`. */
      'If-Unmodified-Since'?: string | undefined;
    };
    body: {
      /**
       * Members to set, also in nested objects. A member with the value null is removed. Absent members do not change.
       * If the whole field is null, all members are removed. The result has at most 4 KiB and 100 members.
       */
      metadata?: Record<string, unknown> | null;
      /** New media type. If null, the server detects the type from the bytes, or else from the name. */
      mime_type?: string | null;
      /** New name. If null, the name is the id. */
      original_name?: string | null;
    };
    reply: EditReply;
  };
  /** Delete a file */
  'DELETE /files/{file_id}': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    headers?: {
      /** Entity tags. If the file's tag is not in the list, the server replies 412 and changes nothing. */
      'If-Match'?: string | undefined;
      /** Entity tags. If the file's tag is in the list, the server replies 304. */
      'If-None-Match'?: string | undefined;
      /** HTTP date. If the content is newer, the server replies 412. Ignored together with `If-Match`. */
      'If-Unmodified-Since'?: string | undefined;
    };
    reply: DeleteReply;
  };
  /** Explain a file */
  'GET /files/{file_id}/explain': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    reply: Explanation;
  };
  /** Read a file's record */
  'GET /files/{file_id}/info': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    reply: FileRecord;
  };
  /** Read the purge receipt of a file */
  'GET /files/{file_id}/receipt': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    reply: SignedReceipt;
  };
  /** Restore a deleted file */
  'POST /files/{file_id}/restore': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    reply: RestoreReply;
  };
  /** Sign a URL to read a file */
  'POST /files/{file_id}/sign': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
    };
    body?: SignRequest;
    reply: SignedUrlReply;
  };
  /** Get a thumbnail (variant) of an image */
  'GET /files/{file_id}/{width}/{height}': {
    path: {
      /** File id: a ULID of 26 upper-case characters. */
      file_id: string;
      /** Size of the variant, in pixels. */
      width: 200 | 250 | 300 | 400 | 500 | 700 | 1000;
      /** The same number as `width`, because variants are square. */
      height: 200 | 250 | 300 | 400 | 500 | 700 | 1000;
    };
    query?: {
      /** `cover` fills the square and cuts off the rest. `inside` keeps the whole picture and the aspect ratio. */
      fit?: 'cover' | 'inside' | undefined;
      /**
       * `true` or `1` returns all frames of an animation as an animated WebP. If the setting `variants.animated` is
       * off, the server replies 400.
       */
      animated?: 'true' | 'false' | '1' | '0' | undefined;
      /**
       * SHA-256 digest of the content. If the digest is current, caches can keep the reply for a year. Otherwise the
       * server ignores this parameter.
       */
      v?: string | undefined;
    };
    headers?: {
      /** Entity tags. If the file's tag is in the list, the server replies 304. */
      'If-None-Match'?: string | undefined;
    };
    reply: Blob;
  };
  /** Check that the process answers */
  'GET /health-checks': {
    reply: HealthReply;
  };
  /** Check that database and storage answer */
  'GET /health-checks/ready': {
    reply: ReadyReply;
  };
  /** Show the key of the caller, and the limits of the service */
  'GET /me': {
    reply: MeReply;
  };
  /** Describe the API */
  'GET /openapi.json': {
    reply: Record<string, unknown>;
  };
  /** List bindings, newest first */
  'GET /organization-storage-bindings': {
    query?: {
      /** Only bindings of this organization. */
      organizationId?: number | undefined;
    };
    reply: BindingReply[];
  };
  /** Bind an organization to a provider */
  'POST /organization-storage-bindings/create': {
    body: CreateBinding;
    reply: BindingReply;
  };
  /** Change the active binding of an organization */
  'PUT /organization-storage-bindings/update': {
    body: UpdateBinding;
    reply: BindingUpdateReply;
  };
  /** List organizations with their storage usage */
  'GET /organizations': {
    query?: {
      /** Maximum number of items in a page. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. Keep the filters the same. */
      cursor?: string | undefined;
    };
    reply: OrganizationsReply;
  };
  /** List the sub-systems of an organization with their storage usage */
  'GET /organizations/{organization_id}/sub-systems': {
    path: {
      /** Organization id, as in the field `organization_id` of a file. */
      organization_id: string;
    };
    query?: {
      /** Maximum number of items in a page. */
      limit?: number | undefined;
      /** `next_cursor` of the previous page. Keep the filters the same. */
      cursor?: string | undefined;
    };
    reply: SubSystemsReply;
  };
  /** Count the files and bytes of an organization */
  'GET /organizations/{organization_id}/usage': {
    path: {
      /** Organization id, as in the field `organization_id` of a file. */
      organization_id: string;
    };
    reply: UsageReply;
  };
  /** List the public keys that verify purge receipts */
  'GET /receipt-keys': {
    reply: ReceiptKeyReply[];
  };
  /** Get the thumbnails of many images in one image (contact sheet) */
  'GET /sheets': {
    query: {
      /** File ids, separated by commas. */
      ids: string | readonly string[];
      /** Cell side in pixels (default 200). */
      size?: 200 | 250 | 300 | 400 | 500 | 700 | 1000 | undefined;
      /** Longest wait for images. Cells of other images are empty, and `Sheet-Pending` names them. */
      wait_ms?: number | undefined;
      /** `cover` fills the square and cuts off the rest. `inside` keeps the whole picture and the aspect ratio. */
      fit?: 'cover' | 'inside' | undefined;
    };
    headers?: {
      /** Entity tags. If the file's tag is in the list, the server replies 304. */
      'If-None-Match'?: string | undefined;
    };
    reply: SheetMap | Blob;
  };
  /** List the providers that accept new files */
  'GET /storage-providers': {
    reply: ProviderReply[];
  };
  /** List resumable uploads, oldest first */
  'GET /uploads': {
    query: {
      /** Organization of the uploads. */
      organization_id: string;
      /** Maximum number of uploads. */
      limit?: number | undefined;
      /** Cursor of the page. */
      cursor?: string | undefined;
    };
    reply: ResumableUploadList;
  };
  /** Create a resumable upload */
  'POST /uploads': {
    query?: {
      /** Organization of a new file. */
      organization_id?: string | undefined;
      /** Sub-system of a new file. */
      sub_system?: string | undefined;
      /** File name. */
      original_name?: string | undefined;
      /** Media type. */
      mime_type?: string | undefined;
      /** Custom metadata: a JSON object. */
      metadata?: string | undefined;
      /** If true, the file is `TEMP` and expires. */
      upload_temp?: boolean | undefined;
      /** Expected SHA-256 digest of the file. */
      sha256?: string | undefined;
      /** The file that gets the new bytes. */
      file_id?: string | undefined;
      /** If true, the replaced file becomes `READY`. */
      make_as_ready?: boolean | undefined;
    };
    headers?: {
      /**
       * A name for this request, for example a UUID. If you retry with the same name and content within 24 hours, you
       * get the first reply again.
       */
      'Idempotency-Key'?: string | undefined;
      /** Version of tus. */
      'Tus-Resumable'?: '1.0.0' | undefined;
      /** Version of a draft of the IETF. */
      'Upload-Draft-Interop-Version'?: '3' | '4' | '5' | '6' | '7' | '8' | undefined;
      /** Draft: `?1` if the request has the last byte. */
      'Upload-Complete'?: '?0' | '?1' | undefined;
      /** tus: the reply to the last byte contains the record (RFC 7240). */
      Prefer?: 'return=representation' | undefined;
      /** File size in bytes. */
      'Upload-Length'?: number | undefined;
      /** tus: the size is not known yet. */
      'Upload-Defer-Length'?: '1' | undefined;
      /** tus: keys with values in base64. */
      'Upload-Metadata'?: string | undefined;
    };
    body?: Blob | ArrayBuffer | ArrayBufferView;
    reply: FileRecord;
  };
  /** Show a resumable upload */
  'GET /uploads/{upload}': {
    path: {
      /** Id and token of the upload, from the `Location` of its creation. A secret. */
      upload: string;
    };
    headers?: {
      /** Version of tus. */
      'Tus-Resumable'?: '1.0.0' | undefined;
      /** Version of a draft of the IETF. */
      'Upload-Draft-Interop-Version'?: '3' | '4' | '5' | '6' | '7' | '8' | undefined;
    };
    reply: ResumableUpload;
  };
  /** Send another method as POST */
  'POST /uploads/{upload}': {
    path: {
      /** Id and token of the upload, from the `Location` of its creation. A secret. */
      upload: string;
    };
    headers?: {
      /** The method. */
      'X-HTTP-Method-Override'?: 'PATCH' | 'DELETE' | 'HEAD' | undefined;
    };
    body?: Blob | ArrayBuffer | ArrayBufferView;
    reply: undefined;
  };
  /** Append bytes to a resumable upload */
  'PATCH /uploads/{upload}': {
    path: {
      /** Id and token of the upload, from the `Location` of its creation. A secret. */
      upload: string;
    };
    headers?: {
      /** Version of tus. */
      'Tus-Resumable'?: '1.0.0' | undefined;
      /** Version of a draft of the IETF. */
      'Upload-Draft-Interop-Version'?: '3' | '4' | '5' | '6' | '7' | '8' | undefined;
      /** Draft: `?1` if the request has the last byte. */
      'Upload-Complete'?: '?0' | '?1' | undefined;
      /** tus: the reply to the last byte contains the record (RFC 7240). */
      Prefer?: 'return=representation' | undefined;
      /** Offset of the first byte. */
      'Upload-Offset'?: number | undefined;
      /** File size in bytes, if the creation did not name the size. */
      'Upload-Length'?: number | undefined;
      /** tus: `sha1` or `sha256`, and the digest of the body in base64. */
      'Upload-Checksum'?: string | undefined;
    };
    body?: Blob | ArrayBuffer | ArrayBufferView;
    reply: FileRecord | undefined;
  };
  /** Cancel a resumable upload */
  'DELETE /uploads/{upload}': {
    path: {
      /** Id and token of the upload, from the `Location` of its creation. A secret. */
      upload: string;
    };
    headers?: {
      /** Version of tus. */
      'Tus-Resumable'?: '1.0.0' | undefined;
      /** Version of a draft of the IETF. */
      'Upload-Draft-Interop-Version'?: '3' | '4' | '5' | '6' | '7' | '8' | undefined;
    };
    reply: undefined;
  };
  /** List webhooks, oldest first, without their secrets */
  'GET /webhooks': {
    reply: WebhookReply[];
  };
  /** Create a webhook */
  'POST /webhooks': {
    body: CreateWebhook;
    reply: NewWebhookReply;
  };
  /** Show a webhook, and how its deliveries go */
  'GET /webhooks/{webhook_id}': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    reply: WebhookReply;
  };
  /** Change the settings of a webhook */
  'PATCH /webhooks/{webhook_id}': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    body: EditWebhook;
    reply: WebhookReply;
  };
  /** Delete a webhook, with its secret and its failures */
  'DELETE /webhooks/{webhook_id}': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    reply: DeletedWebhookReply;
  };
  /** Stop sending events */
  'POST /webhooks/{webhook_id}/disable': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    body?: Record<string, never>;
    reply: WebhookReply;
  };
  /** Send events again after a webhook was disabled */
  'POST /webhooks/{webhook_id}/enable': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    body?: EnableWebhook;
    reply: WebhookReply;
  };
  /** List the events that the endpoint did not accept at once */
  'GET /webhooks/{webhook_id}/failures': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    query?: {
      /** Only this state. */
      state?: 'waiting' | 'held' | 'failed' | undefined;
      /** `next` of the page before. */
      after?: string | undefined;
      /** Maximum number of failures in a page. */
      limit?: number | undefined;
    };
    reply: WebhookFailures;
  };
  /** Send a test event, and wait for the answer */
  'POST /webhooks/{webhook_id}/ping': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    body?: Record<string, never>;
    reply: WebhookPingReply;
  };
  /** Send events again */
  'POST /webhooks/{webhook_id}/redeliver': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    body: RedeliverWebhook;
    reply: RedeliverReply;
  };
  /** Rotate a webhook: create a new secret */
  'POST /webhooks/{webhook_id}/rotate': {
    path: {
      /** Webhook id: a ULID of 26 upper-case characters. */
      webhook_id: string;
    };
    body?: RotateWebhook;
    reply: NewWebhookReply;
  };
}
