//! Headroom: memory of a list that is filled anew in each tick, kept for more than it held last.
//!
//! Such a list grows to what its busiest tick needed, and a tick that is a little busier than all before it has to allocate.
//! `Vec` doubles when it is full, so a world may stand just below that for hours. One that is cleared here grows before it is
//! full, and by so much that a tick has to hold twice as much as any before until it grows again.

/// Clears a list and keeps room for twice what it held, or more. Allocates only where it held more than two thirds of its room.
#[inline]
pub fn clear<T>(list: &mut Vec<T>) {
    let held = list.len();
    list.clear();
    if held + held / 2 > list.capacity() {
        list.reserve(3 * held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_grows_once_until_it_holds_twice_as_much() {
        let (mut list, mut grown) = (Vec::new(), 0);
        let mut fill = |count: usize, grown: &mut u32| {
            clear(&mut list);
            let room = list.capacity();
            list.extend(0..count);
            *grown += u32::from(list.capacity() != room);
        };
        (0..3).for_each(|_| fill(1_000, &mut grown));
        let after_the_first = std::mem::take(&mut grown);
        (1_000..2_000).for_each(|count| fill(count, &mut grown));
        assert_eq!((after_the_first, grown), (1, 0));
    }
}
