/** What each finding of a check means, and what a repair does about it. */

export const FINDINGS: Record<string, { title: string; means: string; repair: string }> = {
  missing_bytes: {
    title: 'Missing bytes',
    means: 'The bytes of a file are not at the place in its record.',
    repair: 'A repair cannot help. Restore the file from a backup.',
  },
  wrong_size: {
    title: 'Wrong size',
    means: 'The bytes differ from the record.',
    repair: 'On the disk, a repair quarantines them. Restore the file from a backup.',
  },
  wrong_digest: {
    title: 'Wrong digest',
    means: 'The bytes differ from the record.',
    repair: 'On the disk, a repair quarantines them. Restore the file from a backup.',
  },
  unreadable_bytes: {
    title: 'Unreadable bytes',
    means: 'The provider or disk answers, but cannot read the bytes.',
    repair: 'A repair cannot help. Look at the disk.',
  },
  doomed_bytes: {
    title: 'Doomed bytes',
    means: 'Bytes of an existing file are queued for removal.',
    repair: 'A repair takes them out of the queue.',
  },
  damaged_row: {
    title: 'Damaged record',
    means: 'A record is unreadable.',
    repair: 'A repair corrects it if the rest of the row is sufficient.',
  },
  wrong_location: {
    title: 'Wrong location',
    means: 'The location in a record does not fit its provider.',
    repair: 'A repair corrects the location.',
  },
  misplaced_bytes: {
    title: 'Misplaced bytes',
    means: 'The bytes of a known blob have another key.',
    repair: 'On the disk, a repair moves or quarantines them.',
  },
  orphan_bytes: {
    title: 'Orphan bytes',
    means: 'No record names these bytes.',
    repair: 'A repair quarantines them, or gives them to the purge.',
  },
  foreign_name: {
    title: 'Foreign name',
    means: 'A name that is not the name of a blob.',
    repair: 'A repair does not change it.',
  },
  leftover_staging: {
    title: 'Leftover upload',
    means: 'An upload without progress for a day.',
    repair: 'A repair quarantines it.',
  },
  leftover_note: {
    title: 'Leftover write',
    means: 'A write to a provider without progress for a day.',
    repair: 'A repair gives the object to the purge.',
  },
  unfinished_upload: {
    title: 'Unfinished multipart upload',
    means: 'A multipart upload at an S3 provider without progress, at least a day old.',
    repair: 'A repair aborts it. The server does so every hour, too.',
  },
  stale_variant: {
    title: 'Stale variants',
    means: 'Cached variants of a missing file, or unreadable variants.',
    repair: 'A repair removes them. The server makes them again.',
  },
  drifted_total: {
    title: 'Wrong total',
    means: 'A total differs from the sum of its files.',
    repair: 'A repair corrects the total.',
  },
};
