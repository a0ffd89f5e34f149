//! Retries a use case if its subject changes during the work.

use crate::domain::error::{Error, ErrorKind};

/// Repeats `attempt` until it returns a result. `None` means that `subject` changed during the attempt, so
/// the use case must decide again. Returns `Conflict` after `attempts` attempts. An error ends the loop at
/// once.
pub(in crate::service) async fn retry_if_changed<T, E, F>(
    subject: &str,
    attempts: usize,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    E: From<Error>,
    F: Future<Output = Result<Option<T>, E>>,
{
    for _ in 0..attempts {
        if let Some(result) = attempt().await? {
            return Ok(result);
        }
    }

    Err(Error::new(ErrorKind::Conflict, format!("{subject} keeps changing")).into())
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn attempts_end_with_a_result_an_error_or_a_conflict() {
        let mut left = 2;
        let third = retry_if_changed("the file", 3, || {
            left -= 1;
            ready(Ok::<_, Error>((left < 0).then_some("done")))
        });
        assert_eq!(third.await.unwrap(), "done");

        let changed = || ready(Ok::<Option<()>, Error>(None));
        let never = retry_if_changed("the file", 3, changed).await.unwrap_err();
        assert_eq!(
            (never.kind(), never.message()),
            (ErrorKind::Conflict, "the file keeps changing")
        );

        let unknown = || ready(Err::<Option<()>, _>(Error::not_found("file")));
        let at_once = retry_if_changed("the file", 3, unknown).await.unwrap_err();
        assert_eq!(at_once.kind(), ErrorKind::NotFound);
    }
}
