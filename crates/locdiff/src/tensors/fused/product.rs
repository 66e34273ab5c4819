//! Products of matrices on one thread.

use gemm::Parallelism;

/// A matrix in a slice.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    numbers: &'a [f32],
    rows: usize,
    columns: usize,
    /// Numbers from row to row, and from column to column.
    strides: [isize; 2],
}

impl<'a> Matrix<'a> {
    /// A matrix whose rows follow each other in memory.
    pub(crate) fn by_rows(numbers: &'a [f32], columns: usize) -> Matrix<'a> {
        let rows = numbers.len() / columns;
        assert_eq!(rows * columns, numbers.len(), "rows are not whole");
        Matrix { numbers, rows, columns, strides: [columns as isize, 1] }
    }

    /// Rows that begin `step` numbers after one another, and so may overlap.
    pub(crate) fn overlapping(
        numbers: &'a [f32],
        rows: usize,
        columns: usize,
        step: usize,
    ) -> Matrix<'a> {
        assert!(rows > 0 && (rows - 1) * step + columns <= numbers.len(), "rows are not whole");
        Matrix { numbers, rows, columns, strides: [step as isize, 1] }
    }

    /// The transposed matrix.
    pub(crate) fn turned(self) -> Matrix<'a> {
        let strides = [self.strides[1], self.strides[0]];
        Matrix { rows: self.columns, columns: self.rows, strides, ..self }
    }
}

/// a·b, row by row; added to what is there, or instead of it.
pub(crate) fn multiply(a: Matrix<'_>, b: Matrix<'_>, output: &mut [f32], add: bool) {
    assert_eq!(a.columns, b.rows, "the sizes don't fit");
    assert_eq!(output.len(), a.rows * b.columns, "the sizes don't fit");
    #[expect(unsafe_code, reason = "gemm's only interface takes pointers")]
    // SAFETY: every element of a, b and the output lies in its slice, as asserted here, in `by_rows` and
    // in `overlapping`. The output's elements are apart, and it is borrowed mutably, so it overlaps
    // neither of the others.
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            output.as_mut_ptr(),
            1,
            b.columns as isize,
            add,
            a.numbers.as_ptr(),
            a.strides[1],
            a.strides[0],
            b.numbers.as_ptr(),
            b.strides[1],
            b.strides[0],
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_overlap() {
        let numbers: Vec<f32> = (0..8_u8).map(f32::from).collect();
        let weights = [1.0, 10.0, 100.0];
        let mut output = vec![0.0; 3];
        let rows = Matrix::overlapping(&numbers, 3, 3, 2);
        multiply(rows, Matrix::by_rows(&weights, 1), &mut output, false);
        assert_eq!(output, [210.0, 432.0, 654.0]);
    }

    #[test]
    fn products_equal_sums() {
        let numbers = |count: usize, step: usize| -> Vec<f32> {
            (0..count).map(|k| (k * step % 17) as f32 - 8.0).collect()
        };
        let (rows, inner, columns) = (5, 7, 3);
        let (a, b) = (numbers(rows * inner, 5), numbers(inner * columns, 3));
        let expected: Vec<f32> = (0..rows * columns)
            .map(|at| {
                let (row, column) = (at / columns, at % columns);
                (0..inner).map(|k| a[row * inner + k] * b[k * columns + column]).sum()
            })
            .collect();
        let transposed = |m: &[f32], columns: usize| -> Vec<f32> {
            let rows = m.len() / columns;
            (0..m.len()).map(|at| m[at % rows * columns + at / rows]).collect()
        };
        let (turned_a, turned_b) = (transposed(&a, inner), transposed(&b, columns));
        let both_a = [Matrix::by_rows(&a, inner), Matrix::by_rows(&turned_a, rows).turned()];
        let both_b = [Matrix::by_rows(&b, columns), Matrix::by_rows(&turned_b, inner).turned()];
        for a in both_a {
            for b in both_b {
                let mut output = vec![1.0; rows * columns];
                multiply(a, b, &mut output, false);
                assert_eq!(output, expected);
                multiply(a, b, &mut output, true);
                assert!(output.iter().zip(&expected).all(|(sum, one)| *sum == 2.0 * one));
            }
        }
    }
}
