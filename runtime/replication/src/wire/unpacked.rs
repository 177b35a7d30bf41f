//! Unpacked: what clients said, as values, from where their datagrams are opened to where systems read it.
//!
//! A message's price is its value's, so it is unpacked before anybody reads it, and that value is what systems read. The
//! values of one kind lie in one list, which its type alone can look into. Lists are kept for their memory.
//!
//! Cost: a look at the list's type for each value that is added or read. Allocates what a value with a list in it takes,
//! and nothing else once the lists have grown.

use std::any::Any;

use throng_pack::{Pack, unpack_body};

/// Values of inputs and requests, kind by kind.
#[derive(Default)]
pub struct Unpacked {
    /// By the place that their kind has among inputs and requests together.
    lists: Vec<Option<Box<dyn AnyList>>>,
}

/// Where a value lies in its kind's list, and what it costs its world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackedAt {
    pub index: u32,
    /// In units of an ordinary input. (at least 1)
    pub price: u32,
}

/// A `Vec` of some type.
trait AnyList: Any + Send + Sync {
    fn forget_all(&mut self);
    fn forget_last(&mut self);
}

impl<T: Send + Sync + 'static> AnyList for Vec<T> {
    fn forget_all(&mut self) {
        self.clear();
    }

    fn forget_last(&mut self) {
        self.pop();
    }
}

impl Unpacked {
    /// Unpacks a value, at the end of its kind's list; `None` if the bytes are none.
    pub(crate) fn push<T: Pack + Send + Sync + 'static>(
        &mut self,
        place: usize,
        bytes: &[u8],
        price: impl FnOnce(&T) -> u32,
    ) -> Option<UnpackedAt> {
        let value: T = unpack_body(bytes).ok()?;
        let price = price(&value).max(1);
        let list = self.list::<T>(place);
        list.push(value);
        Some(UnpackedAt { index: list.len() as u32 - 1, price })
    }

    fn list<T: Send + Sync + 'static>(&mut self, place: usize) -> &mut Vec<T> {
        self.lists.resize_with(self.lists.len().max(place + 1), || None);
        let list = &mut self.lists[place];
        let is_there = list.as_deref().is_some_and(|list| (list as &dyn Any).is::<Vec<T>>());
        if !is_there {
            *list = None;
        }
        let list: &mut dyn Any = &mut **list.get_or_insert_with(|| Box::new(Vec::<T>::new()));
        list.downcast_mut().expect("it is a list of that type, or was made as one")
    }

    /// A value of the kind at `place`, if that is a `T`.
    pub fn get<T: 'static>(&self, place: usize, index: u32) -> Option<&T> {
        let list: &dyn Any = self.lists.get(place)?.as_deref()?;
        list.downcast_ref::<Vec<T>>()?.get(index as usize)
    }

    /// Forgets the value that was added last of the kind at `place`.
    pub fn forget_last(&mut self, place: usize) {
        if let Some(Some(list)) = self.lists.get_mut(place) {
            list.forget_last();
        }
    }

    pub fn clear(&mut self) {
        self.lists.iter_mut().flatten().for_each(|list| list.forget_all());
    }
}

#[cfg(test)]
mod tests {
    use throng_pack::{List, Pack};

    use super::*;

    #[derive(Pack, Debug, PartialEq)]
    struct Step(#[pack(max = 9)] u8);

    #[derive(Pack, Debug, PartialEq)]
    struct Path(List<u8, 8>);

    fn price(Step(length): &Step) -> u32 {
        (*length).into()
    }

    #[test]
    fn values_are_found_again_by_their_types() {
        let mut unpacked = Unpacked::default();
        let path = |unpacked: &mut Unpacked, bytes: &[u8]| unpacked.push::<Path>(3, bytes, |_| 1);
        assert_eq!(unpacked.push(0, &[7], price), Some(UnpackedAt { index: 0, price: 7 }));
        assert_eq!(path(&mut unpacked, &[2, 5, 6]), Some(UnpackedAt { index: 0, price: 1 }));
        assert_eq!(unpacked.push(0, &[0], price), Some(UnpackedAt { index: 1, price: 1 }), "nothing is for nothing");
        assert_eq!((unpacked.push(0, &[10], price), path(&mut unpacked, &[2, 5])), (None, None));
        assert_eq!(
            (unpacked.get(0, 0), unpacked.get(0, 1), unpacked.get(0, 2)),
            (Some(&Step(7)), Some(&Step(0)), None::<&Step>)
        );
        assert_eq!(unpacked.get(3, 0), Some(&Path(vec![5, 6].try_into().unwrap())));
        assert!(unpacked.get::<Step>(3, 0).is_none() && unpacked.get::<Step>(1, 0).is_none());
        unpacked.forget_last(0);
        assert_eq!((unpacked.get(0, 0), unpacked.get(0, 1)), (Some(&Step(7)), None::<&Step>));
        unpacked.clear();
        assert_eq!(unpacked.get::<Step>(0, 0), None);
    }

    /// A worker may come to worlds with another schema.
    #[test]
    fn a_list_of_another_type_gives_way() {
        let mut unpacked = Unpacked::default();
        unpacked.push(0, &[7], price).unwrap();
        unpacked.clear();
        unpacked.push::<Path>(0, &[0], |_| 1).unwrap();
        assert_eq!(unpacked.get(0, 0), Some(&Path(List::default())));
    }
}
