//! Shape: what a field is made of, as far as its type's name tells. A macro sees names only: a type that has been given
//! another name is what it is called.

use syn::{Expr, GenericArgument, PathArguments, Type};

pub enum Shape {
    /// One f32.
    Number(Type),
    /// `[f32; N]`, with N.
    Numbers(Type, Box<Expr>),
    /// `Vec2` or `Vec3`, with how many numbers it has.
    Vector(Type, u32),
    /// Anything that implements `ReplicateField`.
    Code(Type),
    Option(Box<Self>),
    /// `List<T, N>` or `ArrayVec<T, N>`, and what is in it.
    List(Type, Box<Self>),
}

impl Shape {
    pub fn of(ty: &Type) -> syn::Result<Self> {
        let refuse = |message: &str| Err(syn::Error::new_spanned(ty, message));
        match ty {
            // A type that a macro was given stands in a group.
            Type::Group(group) => Self::of(&group.elem),
            Type::Paren(inner) => Self::of(&inner.elem),
            Type::Array(array) => match Self::of(&array.elem)? {
                Self::Number(_) => Ok(Self::Numbers(ty.clone(), Box::new(array.len.clone()))),
                _ => refuse(
                    "only arrays of f32 are packed; use `ArrayVec<T, N>`, or give the values fields of their own",
                ),
            },
            _ => match (name_of(ty).as_str(), value_of(ty)) {
                ("f32", _) => Ok(Self::Number(ty.clone())),
                ("Vec2", _) => Ok(Self::Vector(ty.clone(), 2)),
                ("Vec3", _) => Ok(Self::Vector(ty.clone(), 3)),
                ("Option", Some(value)) => Ok(Self::Option(Box::new(Self::of(value)?))),
                ("List" | "ArrayVec", Some(value)) => Ok(Self::List(ty.clone(), Box::new(Self::of(value)?))),
                ("f64", _) => refuse("an f64 is not packed; use f32"),
                ("u64" | "i64" | "u128" | "i128" | "usize" | "isize", _) => {
                    refuse("an integer is packed from 8, 16 or 32 bits; use u32 or i32, or two of them")
                }
                ("String", _) => refuse("a String has no bound; use `Text<N>`"),
                ("Vec", _) => refuse("a Vec has no bound; use `ArrayVec<T, N>` or `List<T, N>`"),
                ("Entity", _) => {
                    refuse("an Entity means nothing to a client; use `EntityLink`, which goes as the entity's `NetId`")
                }
                _ => Ok(Self::Code(ty.clone())),
            },
        }
    }

    /// What a field's attributes are about.
    pub fn inmost(&self) -> &Self {
        match self {
            Self::Option(of) | Self::List(_, of) => of.inmost(),
            _ => self,
        }
    }

    /// The last name in its path, if it is no number.
    pub fn code_name(&self) -> Option<String> {
        match self {
            Self::Code(ty) => Some(name_of(ty)),
            _ => None,
        }
    }
}

/// The last name in the type's path, or nothing.
fn name_of(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}

/// The first type that the type is given in angle brackets.
fn value_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(given) = &path.path.segments.last()?.arguments else { return None };
    given.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
