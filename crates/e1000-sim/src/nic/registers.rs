//! The registers of the 82540EM as one typed table.
//!
//! Offsets, reset values and implemented bits are those of the manual's
//! chapter 13 ("Register Descriptions"). A register that is not here (wake-up
//! filters, packet buffer memory, the 82542's aliases) is unknown to the model:
//! it reads 0 and the access is counted.

use super::Nic;

/// Effects of a write to a register in addition to storing, one variant for each rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEffect {
    /// CTRL: device reset, PHY reset, forced link settings (13.4.1).
    Control,
    /// EECD: the microwire pins (13.4.3).
    Eecd,
    /// EERD: starts a word read (13.4.4).
    Eerd,
    /// CTRL_EXT: EEPROM reload (13.4.6).
    ControlExtended,
    /// MDIC: starts a PHY access (13.4.8).
    Mdic,
    /// ICR: a written 1 acknowledges a cause (13.4.17).
    IcrAcknowledge,
    /// ICS: a written 1 raises a cause (13.4.19).
    Ics,
    /// IMS: a written 1 unmasks (13.4.20).
    Ims,
    /// IMC: a written 1 masks (13.4.21).
    Imc,
    /// ITR: the throttling interval (13.4.18).
    Itr,
    /// RDTR: bit 31 flushes the delayed interrupt (13.4.30).
    Rdtr,
    /// PBA: the transmit part follows from the receive part (13.4, PBA).
    Pba,
}

/// How a register answers accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAccess {
    /// Reads what was written.
    Plain,
    /// A write changes nothing.
    ReadOnly,
    /// A statistic: a read clears it, a write changes nothing (13.7).
    Counter,
    /// The low half of a 64-bit statistic: a read leaves it (13.7).
    CounterLow,
    /// The high half: a read clears both halves (13.7).
    CounterHigh,
    /// A write has the effect named; reads give the stored value.
    Side(WriteEffect),
    /// A write has the effect named; reads give 0.
    WriteOnly(WriteEffect),
}

macro_rules! registers {
    ($($name:ident $text:literal $offset:literal $access:expr, $reset:literal, $mask:literal, $about:literal;)*) => {
        /// A register by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Register {
            $(#[doc = $about] $name,)*
        }

        impl Register {
            /// Every register, in the order of the table.
            pub const ALL: &'static [Register] = &[$(Register::$name,)*];

            /// The manual's name.
            pub const fn name(self) -> &'static str {
                match self { $(Register::$name => $text,)* }
            }

            /// The offset in BAR 0, in bytes.
            pub const fn offset(self) -> u32 {
                match self { $(Register::$name => $offset,)* }
            }

            /// How it answers accesses.
            pub const fn access(self) -> RegisterAccess {
                match self { $(Register::$name => $access,)* }
            }

            /// The value after a device reset.
            pub const fn reset(self) -> u32 {
                match self { $(Register::$name => $reset,)* }
            }

            /// The bits a write can change.
            pub const fn mask(self) -> u32 {
                match self { $(Register::$name => $mask,)* }
            }

            /// The register at a byte offset.
            pub const fn at(offset: u32) -> Option<Register> {
                match offset { $($offset => Some(Register::$name),)* _ => None }
            }
        }
    };
}

use RegisterAccess::{Counter, CounterHigh, CounterLow, Plain, ReadOnly, Side, WriteOnly};

registers! {
    Ctrl     "CTRL"     0x0000 Side(WriteEffect::Control), 0x0000_0a01, 0xffff_ffff, "Device control.";
    CtrlDup  "CTRL_DUP" 0x0004 Side(WriteEffect::Control), 0x0000_0a01, 0xffff_ffff, "Device control, second address.";
    Status   "STATUS"   0x0008 ReadOnly, 0, 0, "Device status.";
    Eecd     "EECD"     0x0010 Side(WriteEffect::Eecd), 0x0000_0110, 0x0000_0077, "EEPROM pins.";
    Eerd     "EERD"     0x0014 Side(WriteEffect::Eerd), 0, 0xffff_ffff, "EEPROM read.";
    CtrlExt  "CTRL_EXT" 0x0018 Side(WriteEffect::ControlExtended), 0, 0xffff_ffff, "Extended device control.";
    Fla      "FLA"      0x001c Plain, 0, 0x0000_003f, "Flash access; no flash is fitted.";
    Mdic     "MDIC"     0x0020 Side(WriteEffect::Mdic), 0x1000_0000, 0xffff_ffff, "PHY access.";
    Fcal     "FCAL"     0x0028 Plain, 0x00c2_8001, 0xffff_ffff, "Flow control address, low.";
    Fcah     "FCAH"     0x002c Plain, 0x0000_0100, 0x0000_ffff, "Flow control address, high.";
    Fct      "FCT"      0x0030 Plain, 0x0000_8808, 0x0000_ffff, "Flow control EtherType.";
    Vet      "VET"      0x0038 Plain, 0x0000_8100, 0x0000_ffff, "VLAN EtherType.";
    Icr      "ICR"      0x00c0 Side(WriteEffect::IcrAcknowledge), 0, 0xffff_ffff, "Interrupt causes; a read clears.";
    Itr      "ITR"      0x00c4 Side(WriteEffect::Itr), 0, 0x0000_ffff, "Interrupt throttling, 256 ns.";
    Ics      "ICS"      0x00c8 WriteOnly(WriteEffect::Ics), 0, 0xffff_ffff, "Raises causes.";
    Ims      "IMS"      0x00d0 Side(WriteEffect::Ims), 0, 0xffff_ffff, "Unmasks causes; reads the mask.";
    Imc      "IMC"      0x00d8 WriteOnly(WriteEffect::Imc), 0, 0xffff_ffff, "Masks causes.";
    Rctl     "RCTL"     0x0100 Plain, 0, 0x06df_b3fe, "Receive control.";
    Fcttv    "FCTTV"    0x0170 Plain, 0, 0x0000_ffff, "Pause time.";
    Txcw     "TXCW"     0x0178 Plain, 0, 0xc000_ffff, "Transmit configuration word (fibre).";
    Rxcw     "RXCW"     0x0180 ReadOnly, 0, 0, "Receive configuration word (fibre).";
    Tctl     "TCTL"     0x0400 Plain, 0, 0x03ff_fffa, "Transmit control.";
    Tipg     "TIPG"     0x0410 Plain, 0x0060_2006, 0x3fff_ffff, "Inter-packet gaps; no time is modelled.";
    Tbt      "TBT"      0x0448 Plain, 0, 0xffff_ffff, "Transmit burst timer.";
    Ait      "AIT"      0x0458 Plain, 0, 0x0000_ffff, "Adaptive inter-frame spacing.";
    Ledctl   "LEDCTL"   0x0e00 Plain, 0x0706_8302, 0xffff_ffff, "LEDs.";
    Pba      "PBA"      0x1000 Side(WriteEffect::Pba), 0x0010_0030, 0x0000_007f, "Packet buffer split, KiB.";
    Fcrtl    "FCRTL"    0x2160 Plain, 0, 0x8000_fff8, "Receive threshold for XON.";
    Fcrth    "FCRTH"    0x2168 Plain, 0, 0x0000_fff8, "Receive threshold for XOFF.";
    Rdfh     "RDFH"     0x2410 Plain, 0, 0x0000_1fff, "Receive FIFO head (diagnostic).";
    Rdft     "RDFT"     0x2418 Plain, 0, 0x0000_1fff, "Receive FIFO tail (diagnostic).";
    Rdfhs    "RDFHS"    0x2420 Plain, 0, 0x0000_1fff, "Receive FIFO head, saved (diagnostic).";
    Rdfts    "RDFTS"    0x2428 Plain, 0, 0x0000_1fff, "Receive FIFO tail, saved (diagnostic).";
    Rdfpc    "RDFPC"    0x2430 Plain, 0, 0x0000_1fff, "Receive FIFO packets (diagnostic).";
    Rdbal    "RDBAL"    0x2800 Plain, 0, 0xffff_fff0, "Receive ring base, low.";
    Rdbah    "RDBAH"    0x2804 Plain, 0, 0xffff_ffff, "Receive ring base, high.";
    Rdlen    "RDLEN"    0x2808 Plain, 0, 0x000f_ff80, "Receive ring length, bytes.";
    Rdh      "RDH"      0x2810 Plain, 0, 0x0000_ffff, "Receive ring head.";
    Rdt      "RDT"      0x2818 Plain, 0, 0x0000_ffff, "Receive ring tail.";
    Rdtr     "RDTR"     0x2820 Side(WriteEffect::Rdtr), 0, 0x0000_ffff, "Receive delay timer, 1.024 us.";
    Rxdctl   "RXDCTL"   0x2828 Plain, 0x0101_0000, 0x013f_3f3f, "Receive descriptor control.";
    Radv     "RADV"     0x282c Plain, 0, 0x0000_ffff, "Receive absolute delay, 1.024 us.";
    Rsrpd    "RSRPD"    0x2c00 Plain, 0, 0x0000_0fff, "Small packet size.";
    Txdmac   "TXDMAC"   0x3000 Plain, 0, 0x0000_0001, "Transmit DMA control.";
    Tdfh     "TDFH"     0x3410 Plain, 0, 0x0000_07ff, "Transmit FIFO head (diagnostic).";
    Tdft     "TDFT"     0x3418 Plain, 0, 0x0000_07ff, "Transmit FIFO tail (diagnostic).";
    Tdfhs    "TDFHS"    0x3420 Plain, 0, 0x0000_07ff, "Transmit FIFO head, saved (diagnostic).";
    Tdfts    "TDFTS"    0x3428 Plain, 0, 0x0000_07ff, "Transmit FIFO tail, saved (diagnostic).";
    Tdfpc    "TDFPC"    0x3430 Plain, 0, 0x0000_0fff, "Transmit FIFO packets (diagnostic).";
    Tdbal    "TDBAL"    0x3800 Plain, 0, 0xffff_fff0, "Transmit ring base, low.";
    Tdbah    "TDBAH"    0x3804 Plain, 0, 0xffff_ffff, "Transmit ring base, high.";
    Tdlen    "TDLEN"    0x3808 Plain, 0, 0x000f_ff80, "Transmit ring length, bytes.";
    Tdh      "TDH"      0x3810 Plain, 0, 0x0000_ffff, "Transmit ring head.";
    Tdt      "TDT"      0x3818 Plain, 0, 0x0000_ffff, "Transmit ring tail.";
    Tidv     "TIDV"     0x3820 Plain, 0, 0x0000_ffff, "Transmit interrupt delay, 1.024 us.";
    Txdctl   "TXDCTL"   0x3828 Plain, 0, 0xff3f_3f3f, "Transmit descriptor control.";
    Tadv     "TADV"     0x382c Plain, 0, 0x0000_ffff, "Transmit absolute delay, 1.024 us.";
    Tspmt    "TSPMT"    0x3830 Plain, 0x0100_0400, 0xffff_ffff, "Segmentation pad and threshold.";
    Crcerrs  "CRCERRS"  0x4000 Counter, 0, 0, "CRC errors.";
    Algnerrc "ALGNERRC" 0x4004 Counter, 0, 0, "Alignment errors.";
    Symerrs  "SYMERRS"  0x4008 Counter, 0, 0, "Symbol errors.";
    Rxerrc   "RXERRC"   0x400c Counter, 0, 0, "Receive errors.";
    Mpc      "MPC"      0x4010 Counter, 0, 0, "Missed packets.";
    Scc      "SCC"      0x4014 Counter, 0, 0, "Single collisions.";
    Ecol     "ECOL"     0x4018 Counter, 0, 0, "Excessive collisions.";
    Mcc      "MCC"      0x401c Counter, 0, 0, "Multiple collisions.";
    Latecol  "LATECOL"  0x4020 Counter, 0, 0, "Late collisions.";
    Colc     "COLC"     0x4028 Counter, 0, 0, "Collisions.";
    Dc       "DC"       0x4030 Counter, 0, 0, "Deferred.";
    Tncrs    "TNCRS"    0x4034 Counter, 0, 0, "Transmits without carrier sense.";
    Sec      "SEC"      0x4038 Counter, 0, 0, "Sequence errors.";
    Cexterr  "CEXTERR"  0x403c Counter, 0, 0, "Carrier extension errors.";
    Rlec     "RLEC"     0x4040 Counter, 0, 0, "Receive length errors.";
    Xonrxc   "XONRXC"   0x4048 Counter, 0, 0, "XON received.";
    Xontxc   "XONTXC"   0x404c Counter, 0, 0, "XON transmitted.";
    Xoffrxc  "XOFFRXC"  0x4050 Counter, 0, 0, "XOFF received.";
    Xofftxc  "XOFFTXC"  0x4054 Counter, 0, 0, "XOFF transmitted.";
    Fcruc    "FCRUC"    0x4058 Counter, 0, 0, "Unsupported flow control received.";
    Prc64    "PRC64"    0x405c Counter, 0, 0, "Received, 64 bytes.";
    Prc127   "PRC127"   0x4060 Counter, 0, 0, "Received, 65 to 127 bytes.";
    Prc255   "PRC255"   0x4064 Counter, 0, 0, "Received, 128 to 255 bytes.";
    Prc511   "PRC511"   0x4068 Counter, 0, 0, "Received, 256 to 511 bytes.";
    Prc1023  "PRC1023"  0x406c Counter, 0, 0, "Received, 512 to 1023 bytes.";
    Prc1522  "PRC1522"  0x4070 Counter, 0, 0, "Received, 1024 bytes or more.";
    Gprc     "GPRC"     0x4074 Counter, 0, 0, "Good packets received.";
    Bprc     "BPRC"     0x4078 Counter, 0, 0, "Broadcasts received.";
    Mprc     "MPRC"     0x407c Counter, 0, 0, "Multicasts received.";
    Gptc     "GPTC"     0x4080 Counter, 0, 0, "Good packets transmitted.";
    Gorcl    "GORCL"    0x4088 CounterLow, 0, 0, "Good octets received, low.";
    Gorch    "GORCH"    0x408c CounterHigh, 0, 0, "Good octets received, high.";
    Gotcl    "GOTCL"    0x4090 CounterLow, 0, 0, "Good octets transmitted, low.";
    Gotch    "GOTCH"    0x4094 CounterHigh, 0, 0, "Good octets transmitted, high.";
    Rnbc     "RNBC"     0x40a0 Counter, 0, 0, "No buffers.";
    Ruc      "RUC"      0x40a4 Counter, 0, 0, "Undersized.";
    Rfc      "RFC"      0x40a8 Counter, 0, 0, "Fragments.";
    Roc      "ROC"      0x40ac Counter, 0, 0, "Oversized.";
    Rjc      "RJC"      0x40b0 Counter, 0, 0, "Jabber.";
    Mgtprc   "MGTPRC"   0x40b4 Counter, 0, 0, "Management packets received.";
    Mgtpdc   "MGTPDC"   0x40b8 Counter, 0, 0, "Management packets dropped.";
    Mgtptc   "MGTPTC"   0x40bc Counter, 0, 0, "Management packets transmitted.";
    Torl     "TORL"     0x40c0 CounterLow, 0, 0, "Octets received, low.";
    Torh     "TORH"     0x40c4 CounterHigh, 0, 0, "Octets received, high.";
    Totl     "TOTL"     0x40c8 CounterLow, 0, 0, "Octets transmitted, low.";
    Toth     "TOTH"     0x40cc CounterHigh, 0, 0, "Octets transmitted, high.";
    Tpr      "TPR"      0x40d0 Counter, 0, 0, "Packets received.";
    Tpt      "TPT"      0x40d4 Counter, 0, 0, "Packets transmitted.";
    Ptc64    "PTC64"    0x40d8 Counter, 0, 0, "Transmitted, 64 bytes.";
    Ptc127   "PTC127"   0x40dc Counter, 0, 0, "Transmitted, 65 to 127 bytes.";
    Ptc255   "PTC255"   0x40e0 Counter, 0, 0, "Transmitted, 128 to 255 bytes.";
    Ptc511   "PTC511"   0x40e4 Counter, 0, 0, "Transmitted, 256 to 511 bytes.";
    Ptc1023  "PTC1023"  0x40e8 Counter, 0, 0, "Transmitted, 512 to 1023 bytes.";
    Ptc1522  "PTC1522"  0x40ec Counter, 0, 0, "Transmitted, 1024 bytes or more.";
    Mptc     "MPTC"     0x40f0 Counter, 0, 0, "Multicasts transmitted.";
    Bptc     "BPTC"     0x40f4 Counter, 0, 0, "Broadcasts transmitted.";
    Tsctc    "TSCTC"    0x40f8 Counter, 0, 0, "Segmentation contexts transmitted.";
    Tsctfc   "TSCTFC"   0x40fc Counter, 0, 0, "Segmentation contexts failed.";
    Rxcsum   "RXCSUM"   0x5000 Plain, 0, 0x0000_07ff, "Receive checksum control.";
    Wuc      "WUC"      0x5800 Plain, 0, 0x0000_000f, "Wake-up control; no wake-up is modelled.";
    Wufc     "WUFC"     0x5808 Plain, 0, 0x000f_00ff, "Wake-up filters.";
    Wus      "WUS"      0x5810 Plain, 0, 0x000f_00ff, "Wake-up status.";
    Manc     "MANC"     0x5820 Plain, 0, 0xffff_ffff, "Management control; no management is modelled.";
    Ipav     "IPAV"     0x5838 Plain, 0, 0x0001_000f, "IP addresses valid.";
    Wupl     "WUPL"     0x5900 ReadOnly, 0, 0, "Wake-up packet length.";
}

/// How many registers the table has.
pub const REGISTERS: usize = Register::ALL.len();

/// A table of 32-bit words in BAR 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Multicast hash bits, 128 words at 0x5200 (13.5.1).
    Multicast,
    /// Receive addresses, 16 pairs at 0x5400 (13.5.2, 13.5.3).
    ReceiveAddress,
    /// VLAN filter bits, 128 words at 0x5600 (13.5.4).
    Vlan,
}

impl Table {
    /// Every table.
    pub const ALL: [Table; 3] = [Table::Multicast, Table::ReceiveAddress, Table::Vlan];

    /// The offset of the first word in BAR 0.
    pub const fn offset(self) -> u32 {
        match self {
            Table::Multicast => 0x5200,
            Table::ReceiveAddress => 0x5400,
            Table::Vlan => 0x5600,
        }
    }

    /// How many words.
    pub const fn words(self) -> usize {
        match self {
            Table::Multicast | Table::Vlan => 128,
            Table::ReceiveAddress => 32,
        }
    }

    /// The bits of word `index` that a write can change.
    pub const fn mask(self, index: usize) -> u32 {
        match self {
            Table::Multicast | Table::Vlan => 0xffff_ffff,
            // RAH: the last two address bytes, address select and valid.
            Table::ReceiveAddress if index % 2 == 1 => 0x8003_ffff,
            Table::ReceiveAddress => 0xffff_ffff,
        }
    }
}

/// What is at an offset of BAR 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterPlace {
    /// A single register.
    Register(Register),
    /// Word `.1` of a table.
    Table(Table, usize),
}

impl RegisterPlace {
    /// What is at a byte offset; `None` for unknown or unaligned ones.
    pub fn at(offset: u32) -> Option<RegisterPlace> {
        if let Some(register) = Register::at(offset) {
            return Some(RegisterPlace::Register(register));
        }
        Table::ALL.into_iter().find_map(|table| {
            let from = offset.checked_sub(table.offset())?;
            let index = (from / 4) as usize;
            (from % 4 == 0 && index < table.words()).then_some(RegisterPlace::Table(table, index))
        })
    }
}

/// Interrupt causes: bits of ICR, ICS, IMS and IMC (13.4.17).
pub mod cause {
    /// Transmit descriptor written back.
    pub const TXDW: u32 = 1 << 0;
    /// Transmit queue empty.
    pub const TXQE: u32 = 1 << 1;
    /// Link status change.
    pub const LSC: u32 = 1 << 2;
    /// Receive descriptors are down to the threshold of RCTL.RDMTS.
    pub const RXDMT0: u32 = 1 << 4;
    /// Receiver overrun.
    pub const RXO: u32 = 1 << 6;
    /// Receive timer: frames are in memory.
    pub const RXT0: u32 = 1 << 7;
    /// An MDIC access with the interrupt bit is complete.
    pub const MDAC: u32 = 1 << 9;
    /// Transmit descriptors are down to the threshold of TXDCTL.LWTHRESH.
    pub const TXD_LOW: u32 = 1 << 15;
    /// A small packet was received (RSRPD).
    pub const SRPD: u32 = 1 << 16;
    /// Bit 31 of ICR as it is read: a cause is unmasked. Not a cause itself.
    pub const INT_ASSERTED: u32 = 1 << 31;
    /// Every cause of the device (13.4.17), and bits 5 and 8, which have no meaning but
    /// are stored: the driver's interrupt test sets and expects them.
    pub const ALL: u32 = 0x0001_ffff & !(1 << 11);
}

/// Bits of CTRL (13.4.1).
pub mod ctrl {
    /// Full duplex.
    pub const FD: u32 = 1 << 0;
    /// Set link up.
    pub const SLU: u32 = 1 << 6;
    /// Forced speed.
    pub const FRCSPD: u32 = 1 << 11;
    /// Forced duplex.
    pub const FRCDPX: u32 = 1 << 12;
    /// Device reset; clears itself.
    pub const RST: u32 = 1 << 26;
    /// Receive flow control.
    pub const RFCE: u32 = 1 << 27;
    /// VLAN mode: tags are stripped and inserted.
    pub const VME: u32 = 1 << 30;
    /// PHY reset.
    pub const PHY_RST: u32 = 1 << 31;
}

/// Bits of STATUS (13.4.2).
pub mod status {
    /// Full duplex.
    pub const FD: u32 = 1 << 0;
    /// Link up.
    pub const LU: u32 = 1 << 1;
    /// The bus runs at 66 MHz.
    pub const PCI66: u32 = 1 << 11;
}

/// Bits of RCTL (13.4.22).
pub mod rctl {
    /// Receiver enable.
    pub const EN: u32 = 1 << 1;
    /// Unicast promiscuous.
    pub const UPE: u32 = 1 << 3;
    /// Multicast promiscuous.
    pub const MPE: u32 = 1 << 4;
    /// Long packets.
    pub const LPE: u32 = 1 << 5;
    /// Where the descriptor threshold is.
    pub const RDMTS_SHIFT: u32 = 8;
    /// Where the multicast offset is.
    pub const MO_SHIFT: u32 = 12;
    /// Broadcast accept.
    pub const BAM: u32 = 1 << 15;
    /// Where the buffer size is.
    pub const BSIZE_SHIFT: u32 = 16;
    /// VLAN filter enable.
    pub const VFE: u32 = 1 << 18;
    /// Canonical form filter enable.
    pub const CFIEN: u32 = 1 << 19;
    /// The canonical form bit that passes.
    pub const CFI: u32 = 1 << 20;
    /// Discard pause frames.
    pub const DPF: u32 = 1 << 22;
    /// Pass MAC control frames.
    pub const PMCF: u32 = 1 << 23;
    /// Buffer sizes times 16.
    pub const BSEX: u32 = 1 << 25;
    /// Strip the CRC.
    pub const SECRC: u32 = 1 << 26;
}

/// Bits of TCTL (13.4.33).
pub mod tctl {
    /// Transmitter enable.
    pub const EN: u32 = 1 << 1;
    /// Pad short packets.
    pub const PSP: u32 = 1 << 3;
}

/// Bits of RXCSUM (13.4, RXCSUM).
pub mod rxcsum {
    /// IPv4 header checksum offload.
    pub const IPOFL: u32 = 1 << 8;
    /// TCP and UDP checksum offload.
    pub const TUOFL: u32 = 1 << 9;
    /// The same on IPv6.
    pub const IPV6OFL: u32 = 1 << 10;
}

impl Nic {
    /// The stored value of a register, without side effects.
    #[inline(always)]
    pub fn peek(&self, register: Register) -> u32 {
        self.registers[register as usize]
    }

    /// The stored value of a pair of registers that is one 64-bit number.
    #[inline(always)]
    pub fn peek_pair(&self, low: Register, high: Register) -> u64 {
        u64::from(self.peek(high)) << 32 | u64::from(self.peek(low))
    }

    /// Stores without side effects.
    #[inline(always)]
    pub(super) fn poke(&mut self, register: Register, value: u32) {
        self.registers[register as usize] = value;
    }
}
