//! Contact sheets in JSON.

use serde::{Deserialize, Serialize};

use super::vocabulary::ErrorCode;

/// The map of a contact sheet, with each file's position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SheetMap {
    /// Sheet width, in pixels.
    pub width: u32,
    /// Sheet height, in pixels.
    pub height: u32,
    /// Cell side, in pixels.
    pub size: u32,
    /// Column count.
    pub columns: u32,
    /// Row count.
    pub rows: u32,
    /// Cells, row by row, in the order of the requested ids.
    pub cells: Vec<SheetCell>,
}

impl SheetMap {
    /// Creates the map of a grid from its cells.
    pub fn new(size: u32, columns: u32, rows: u32, cells: Vec<SheetCell>) -> Self {
        Self { width: columns * size, height: rows * size, size, columns, rows, cells }
    }
}

/// A cell of a contact sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SheetCell {
    /// File id.
    pub file_id: String,
    /// Distance from the left edge of the sheet, in pixels. Null for an empty cell.
    pub x: Option<u32>,
    /// Distance from the upper edge of the sheet, in pixels. Null for an empty cell.
    pub y: Option<u32>,
    /// Picture width, in pixels. Null for an empty cell.
    pub width: Option<u32>,
    /// Picture height, in pixels. Null for an empty cell.
    pub height: Option<u32>,
    /// Reason why the cell is empty. Null for a cell with a picture.
    pub error: Option<SheetCellError>,
}

impl SheetCell {
    /// Creates a cell with a picture. Position and size are in pixels.
    pub fn shown(file_id: impl Into<String>, x: u32, y: u32, width: u32, height: u32) -> Self {
        Self {
            file_id: file_id.into(),
            x: Some(x),
            y: Some(y),
            width: Some(width),
            height: Some(height),
            error: None,
        }
    }

    /// Creates an empty cell.
    pub fn empty(
        file_id: impl Into<String>,
        code: impl Into<ErrorCode>,
        detail: impl Into<String>,
    ) -> Self {
        let error = Some(SheetCellError { code: code.into(), detail: detail.into() });
        Self { file_id: file_id.into(), x: None, y: None, width: None, height: None, error }
    }
}

/// The reason why a cell of a contact sheet is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SheetCellError {
    /// Stable error code, as in a problem document.
    pub code: ErrorCode,
    /// Explanation for people.
    pub detail: String,
}
