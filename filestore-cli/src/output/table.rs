//! Tables with aligned columns.

use unicode_width::UnicodeWidthStr;

/// The side to which a column's cells are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with a heading, its columns as wide as they need to be.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the heading and one line per row.
    pub(crate) fn render(&self) -> String {
        let heading = self.columns.iter().map(|(title, _)| *title).collect::<Vec<_>>();
        let widths = self.widths(&heading);
        self.line(&heading, &widths) + &self.lines(&widths)
    }

    /// Renders the rows without a heading, to continue another table.
    pub(crate) fn render_more(&self) -> String {
        self.lines(&self.widths(&[]))
    }

    fn widths(&self, heading: &[&str]) -> Vec<usize> {
        let mut widths: Vec<usize> = heading.iter().map(|title| title.width()).collect();
        widths.resize(self.columns.len(), 0);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        widths
    }

    fn lines(&self, widths: &[usize]) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect::<Vec<_>>());
        rows.map(|cells| self.line(&cells, widths)).collect()
    }

    fn line(&self, cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            // Not `{:<width$}`: that counts characters, and a wide one takes two columns.
            let filling = " ".repeat(width.saturating_sub(cell.width()));
            match align {
                Align::Left => line.extend([cell, filling.as_str(), "  "]),
                Align::Right => line.extend([filling.as_str(), cell, "  "]),
            }
        }
        format!("{}\n", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_keep_the_columns_aligned() {
        let mut table = Table::new([("NAME", Align::Left), ("SIZE", Align::Right)]);
        table.row(["写真.jpg".to_owned(), "1 B".to_owned()]);
        table.row(["photo-1.jpg".to_owned(), "12.0 MiB".to_owned()]);
        assert_eq!(
            table.render(),
            "NAME             SIZE\n写真.jpg          1 B\nphoto-1.jpg  12.0 MiB\n"
        );
    }
}
