//! The table `[backup]`.

use super::ConfigFileError;
use super::tables::{BackupTable, DestinationTable};
use crate::domain::config::{BackupDestination, BackupPlace};
use crate::domain::provider::ProviderConfig;

impl BackupTable {
    /// Reads the destinations. Each has a unique name, and is a directory or one of `providers`.
    pub(super) fn into_destinations(
        self,
        providers: &[ProviderConfig],
    ) -> Result<Vec<BackupDestination>, ConfigFileError> {
        let mut destinations: Vec<BackupDestination> = Vec::new();
        for mut table in self.destinations.unwrap_or_default() {
            let name = table.name.take().filter(|name| is_destination_name(name)).ok_or({
                ConfigFileError::Value {
                    key: "backup.destinations.name",
                    problem: "must be given, 1 to 64 characters of A-Z a-z 0-9 _ -",
                }
            })?;
            if destinations.iter().any(|other| other.name == name) {
                return Err(ConfigFileError::Value {
                    key: "backup.destinations.name",
                    problem: "must be unique for each destination",
                });
            }
            let place = table.into_place(providers)?;
            destinations.push(BackupDestination { name, place });
        }
        Ok(destinations)
    }
}

impl DestinationTable {
    /// Reads the place of a destination: an absolute path, or a provider code.
    fn into_place(self, providers: &[ProviderConfig]) -> Result<BackupPlace, ConfigFileError> {
        let Some(code) = self.provider else {
            let path = self.path.filter(|path| path.is_absolute());
            return path.map(BackupPlace::Directory).ok_or(ConfigFileError::Value {
                key: "backup.destinations.path",
                problem: "must be given, an absolute path, unless provider is",
            });
        };
        if self.path.is_some() {
            return Err(ConfigFileError::Value {
                key: "backup.destinations.provider",
                problem: "must not be given together with path",
            });
        }

        let named = providers.iter().find(|provider| provider.code.as_str() == code);
        named.map(|provider| BackupPlace::Provider(provider.code.clone())).ok_or(
            ConfigFileError::Value {
                key: "backup.destinations.provider",
                problem: "must be the code of one of the providers",
            },
        )
    }
}

fn is_destination_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
