//! A card with a context for each guest (CDNA): stock drivers in eight guests, and the bad cases
//! that the hypervisor and the card have to bear. Nothing lost, nothing leaked, others served.

#[path = "contexts/card.rs"]
mod card;
#[path = "contexts/drivers.rs"]
mod drivers;
