//! The hot routines in the order of the paper's table 1, for figure 10.

/// The routines of the paper's table 1 (Linux 2.6.18), in its order, by their names in
/// Linux 6.1: some of its ten are several routines there, some share one.
///
/// | table 1 (2.6.18) | 6.1 |
/// |---|---|
/// | `_netdev_alloc_skb` | `__netdev_alloc_frag_align`, `napi_build_skb`, `__napi_alloc_skb` |
/// | `dev_kfree_skb_any` | `napi_consume_skb` |
/// | `netif_rx` | `napi_gro_receive`, never an upcall (6.4) |
/// | `dma_map_single`, `dma_map_page` | `dma_map_page_attrs` |
/// | `dma_unmap_single`, `dma_unmap_page` | `dma_unmap_page_attrs` |
/// | `_spin_trylock`, `_spin_unlock_irqrestore` | `napi_schedule_prep`, `__napi_schedule`, `napi_complete_done`: exclusion of polls |
/// | `eth_type_trans` | `eth_type_trans` |
/// | not there | `is_vmalloc_addr`, `skb_clone_tx_timestamp`, `dql_completed` |
pub const PAPER_ORDER: [&str; 13] = [
    "__netdev_alloc_frag_align",
    "napi_build_skb",
    "__napi_alloc_skb",
    "napi_consume_skb",
    "dma_map_page_attrs",
    "dma_unmap_page_attrs",
    "napi_schedule_prep",
    "__napi_schedule",
    "napi_complete_done",
    "eth_type_trans",
    "is_vmalloc_addr",
    "skb_clone_tx_timestamp",
    "dql_completed",
];

/// The sets of figure 10: none, then one routine more each time. `called` lists the
/// routines that transmission calls: the others would change nothing.
pub fn cumulative(called: &dyn Fn(&str) -> bool) -> Vec<Vec<&'static str>> {
    let names: Vec<&str> = PAPER_ORDER
        .into_iter()
        .filter(|name| called(name))
        .collect();
    (0..=names.len())
        .map(|count| names[..count].to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_has_one_upcall_more() {
        let points = cumulative(&|name| name.starts_with("dma"));
        let expected: [&[&str]; 3] = [
            &[],
            &["dma_map_page_attrs"],
            &["dma_map_page_attrs", "dma_unmap_page_attrs"],
        ];
        assert_eq!(points, expected);
    }
}
