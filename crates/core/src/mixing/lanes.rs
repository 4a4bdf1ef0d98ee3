//! Arithmetic on sixteen 32-bit words side by side, one a subject.

/// How many subjects are worked on at a time.
pub(super) const LANES: usize = 16;

/// What does the arithmetic.
pub(super) trait VectorUnit: Copy {
    type Vector: Copy;

    fn load(self, words: &[u32; LANES]) -> Self::Vector;
    fn store(self, vector: Self::Vector, words: &mut [u32; LANES]);
    fn add(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    fn xor(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Rotated to the left by `BITS`.
    fn rotate<const BITS: i32>(self, x: Self::Vector) -> Self::Vector;
    /// Shifted to the right by `BITS`.
    fn shift<const BITS: u32>(self, x: Self::Vector) -> Self::Vector;
}

/// Arrays, for the compiler to turn into whatever vectors there are.
#[derive(Clone, Copy)]
pub(super) struct Arrays;

impl VectorUnit for Arrays {
    type Vector = [u32; LANES];

    #[inline(always)]
    fn load(self, words: &[u32; LANES]) -> Self::Vector {
        *words
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, words: &mut [u32; LANES]) {
        *words = vector;
    }

    #[inline(always)]
    fn add(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
        std::array::from_fn(|lane| x[lane].wrapping_add(y[lane]))
    }

    #[inline(always)]
    fn xor(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
        std::array::from_fn(|lane| x[lane] ^ y[lane])
    }

    #[inline(always)]
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
        std::array::from_fn(|lane| x[lane] & y[lane])
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, x: Self::Vector) -> Self::Vector {
        std::array::from_fn(|lane| x[lane].rotate_left(BITS as u32))
    }

    #[inline(always)]
    fn shift<const BITS: u32>(self, x: Self::Vector) -> Self::Vector {
        std::array::from_fn(|lane| x[lane] >> BITS)
    }
}

#[cfg(target_arch = "x86_64")]
impl VectorUnit for pulp::x86::V4 {
    type Vector = std::arch::x86_64::__m512i;

    #[inline(always)]
    fn load(self, words: &[u32; LANES]) -> Self::Vector {
        pulp::cast(*words)
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, words: &mut [u32; LANES]) {
        *words = pulp::cast(vector);
    }

    #[inline(always)]
    fn add(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
        self.avx512f._mm512_add_epi32(x, y)
    }

    #[inline(always)]
    fn xor(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
        self.avx512f._mm512_xor_si512(x, y)
    }

    #[inline(always)]
    fn and(self, x: Self::Vector, y: Self::Vector) -> Self::Vector {
        self.avx512f._mm512_and_si512(x, y)
    }

    #[inline(always)]
    fn rotate<const BITS: i32>(self, x: Self::Vector) -> Self::Vector {
        self.avx512f._mm512_rol_epi32::<BITS>(x)
    }

    #[inline(always)]
    fn shift<const BITS: u32>(self, x: Self::Vector) -> Self::Vector {
        self.avx512f._mm512_srli_epi32::<BITS>(x)
    }
}
