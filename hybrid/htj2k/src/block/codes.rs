//! The variable-length codes of ITU-T T.814, Annex C: which samples of a quad are significant, and
//! what is known of their exponents.
//!
//! Each entry is eight hexadecimal digits: context, significance ρ, whether an exponent offset
//! follows, e_k (samples whose exponent bound is known), e_1 (and reached), the codeword in two
//! digits with its first bit lowest, and its length. ρ, e_k and e_1 have one bit a sample, in the
//! order upper left, lower left, upper right, lower right.

/// Codes of the first row of quads of a block (ITU-T T.814, Annex C), in the form that the module's head describes.
#[rustfmt::skip]
#[allow(clippy::unreadable_literal, clippy::unusual_byte_groupings)]
const FIRST_ROW: [u32; 444] = [
    0x010_00_06_4, 0x011_11_3f_7, 0x020_00_00_3, 0x021_22_7f_7, 0x030_00_11_5, 0x031_22_5f_7, 0x031_31_1f_7,
    0x040_00_02_3, 0x041_44_13_6, 0x050_00_0e_5, 0x051_44_23_6, 0x051_51_0f_7, 0x060_00_03_6, 0x061_00_6f_7,
    0x070_00_2f_7, 0x071_22_4f_7, 0x071_20_0d_6, 0x080_00_04_3, 0x081_88_3d_6, 0x090_00_1d_6, 0x091_00_2d_6,
    0x0a0_00_01_5, 0x0a1_88_35_6, 0x0a1_a2_77_7, 0x0b0_00_37_7, 0x0b1_11_57_7, 0x0b1_10_09_6, 0x0c0_00_1e_5,
    0x0c1_cc_17_7, 0x0c1_c4_15_6, 0x0c1_c8_25_6, 0x0d0_00_67_7, 0x0d1_11_27_7, 0x0d1_54_47_7, 0x0d1_d8_07_7,
    0x0e0_00_7b_7, 0x0e1_22_4b_7, 0x0e1_a8_05_6, 0x0e1_e4_3b_7, 0x0f0_00_5b_7, 0x0f1_99_1b_7, 0x0f1_ba_6b_7,
    0x0f1_fc_2b_7, 0x0f1_f8_39_6, 0x0f1_e6_73_7, 0x0f1_e2_19_6, 0x0f1_f5_0b_7, 0x0f1_f4_29_6, 0x0f1_f1_33_7,
    0x100_00_00_2, 0x110_00_0e_4, 0x111_11_1f_7, 0x120_00_06_4, 0x121_22_3b_6, 0x130_00_1b_6, 0x131_00_3d_6,
    0x140_00_0a_4, 0x141_44_2b_6, 0x150_00_0b_6, 0x151_44_33_6, 0x151_51_7f_7, 0x160_00_13_6, 0x161_00_23_6,
    0x170_00_3f_7, 0x171_22_5f_7, 0x171_20_03_6, 0x180_00_02_4, 0x181_88_1d_6, 0x190_00_2d_6, 0x191_00_0d_6,
    0x1a0_00_35_6, 0x1a1_88_15_6, 0x1a1_a2_6f_7, 0x1b0_00_2f_7, 0x1b1_11_4f_7, 0x1b1_10_11_6, 0x1c0_00_01_5,
    0x1c1_88_25_6, 0x1c1_c4_05_6, 0x1d0_00_0f_7, 0x1d1_11_17_7, 0x1d1_54_39_6, 0x1d1_d8_77_7, 0x1e0_00_37_7,
    0x1e1_22_57_7, 0x1e1_a8_19_6, 0x1e1_e4_67_7, 0x1f0_00_07_7, 0x1f1_b8_29_6, 0x1f1_88_27_7, 0x1f1_a2_09_6,
    0x1f1_e4_31_6, 0x1f1_f1_47_7, 0x200_00_00_2, 0x210_00_0e_4, 0x211_11_1b_6, 0x220_00_06_4, 0x221_22_3f_7,
    0x230_00_2b_6, 0x231_11_33_6, 0x231_32_7f_7, 0x240_00_0a_4, 0x241_44_0b_6, 0x250_00_01_5, 0x251_55_2f_7,
    0x251_51_13_6, 0x251_54_23_6, 0x260_00_03_6, 0x261_00_5f_7, 0x270_00_1f_7, 0x271_22_6f_7, 0x271_31_11_6,
    0x271_74_37_7, 0x280_00_02_4, 0x281_88_4f_7, 0x290_00_3d_6, 0x291_00_1d_6, 0x2a0_00_2d_6, 0x2a1_00_0d_6,
    0x2b0_00_0f_7, 0x2b1_22_77_7, 0x2b1_20_35_6, 0x2c0_00_15_6, 0x2c1_44_25_6, 0x2c1_c8_57_7, 0x2d0_00_17_7,
    0x2d1_88_05_6, 0x2d1_c4_39_6, 0x2d1_d1_67_7, 0x2e0_00_27_7, 0x2e1_22_7b_7, 0x2e1_20_19_6, 0x2f0_00_47_7,
    0x2f1_f1_29_6, 0x2f1_11_09_6, 0x2f1_32_07_7, 0x2f1_74_31_6, 0x2f1_f8_3b_7, 0x300_00_00_3, 0x310_00_04_4,
    0x311_11_3d_6, 0x320_00_0c_5, 0x321_22_4f_7, 0x330_00_1d_6, 0x331_11_05_6, 0x331_32_7f_7, 0x340_00_16_5,
    0x341_44_2d_6, 0x350_00_06_5, 0x351_55_1a_5, 0x351_51_0d_6, 0x351_54_35_6, 0x360_00_3f_7, 0x361_44_5f_7,
    0x361_62_1f_7, 0x370_00_6f_7, 0x371_66_2f_7, 0x371_64_15_6, 0x371_73_77_7, 0x371_71_25_6, 0x371_72_0f_7,
    0x380_00_0a_5, 0x381_88_07_7, 0x390_00_39_6, 0x391_11_37_7, 0x391_98_57_7, 0x3a0_00_19_6, 0x3a1_88_29_6,
    0x3a1_a2_17_7, 0x3b0_00_67_7, 0x3b1_b1_27_7, 0x3b1_11_47_7, 0x3b1_32_09_6, 0x3b1_b8_7b_7, 0x3c0_00_31_6,
    0x3c1_44_11_6, 0x3c1_c8_3b_7, 0x3d0_00_5b_7, 0x3d1_99_1b_7, 0x3d1_d5_2b_7, 0x3d1_d1_21_6, 0x3d1_dc_6b_7,
    0x3d1_d4_01_6, 0x3d1_d8_4b_7, 0x3e0_00_0b_7, 0x3e1_e4_73_7, 0x3e1_44_13_7, 0x3e1_c8_3e_6, 0x3e1_e2_33_7,
    0x3f0_00_53_7, 0x3f1_aa_0e_6, 0x3f1_b9_63_7, 0x3f1_fc_03_7, 0x3f1_f8_12_5, 0x3f1_e6_23_7, 0x3f1_f5_1e_6,
    0x3f1_f4_02_5, 0x3f1_f3_43_7, 0x3f1_f1_1c_5, 0x3f1_f2_2e_6, 0x400_00_00_2, 0x410_00_0e_4, 0x411_11_3f_7,
    0x420_00_06_4, 0x421_22_1b_6, 0x430_00_2b_6, 0x431_22_3d_6, 0x431_31_7f_7, 0x440_00_0a_4, 0x441_44_5f_7,
    0x450_00_0b_6, 0x451_00_33_6, 0x460_00_13_6, 0x461_00_23_6, 0x470_00_1f_7, 0x471_44_6f_7, 0x471_40_03_6,
    0x480_00_02_4, 0x481_88_1d_6, 0x490_00_11_6, 0x491_00_77_7, 0x4a0_00_01_5, 0x4a1_aa_2f_7, 0x4a1_a2_2d_6,
    0x4a1_a8_0d_6, 0x4b0_00_4f_7, 0x4b1_b2_0f_7, 0x4b1_00_35_6, 0x4c0_00_15_6, 0x4c1_88_25_6, 0x4c1_c4_37_7,
    0x4d0_00_57_7, 0x4d1_11_07_7, 0x4d1_10_05_6, 0x4e0_00_17_7, 0x4e1_44_39_6, 0x4e1_c8_19_6, 0x4e1_e2_67_7,
    0x4f0_00_27_7, 0x4f1_99_47_7, 0x4f1_91_29_6, 0x4f1_76_7b_7, 0x4f1_72_09_6, 0x4f1_b8_31_6, 0x4f1_f4_3b_7,
    0x500_00_00_3, 0x510_00_1a_5, 0x511_11_7f_7, 0x520_00_0a_5, 0x521_22_1d_6, 0x530_00_2d_6, 0x531_33_5f_7,
    0x531_32_39_6, 0x531_31_3f_7, 0x540_00_12_5, 0x541_44_1f_7, 0x550_00_0d_6, 0x551_44_35_6, 0x551_51_6f_7,
    0x560_00_15_6, 0x561_22_25_6, 0x561_64_2f_7, 0x570_00_4f_7, 0x571_66_57_7, 0x571_64_05_6, 0x571_73_0f_7,
    0x571_72_77_7, 0x571_71_37_7, 0x580_00_02_5, 0x581_88_19_6, 0x590_00_26_6, 0x591_88_17_7, 0x591_91_67_7,
    0x5a0_00_1c_5, 0x5a1_aa_29_6, 0x5a1_a2_09_6, 0x5a1_a8_31_6, 0x5b0_00_27_7, 0x5b1_99_07_7, 0x5b1_98_11_6,
    0x5b1_b3_47_7, 0x5b1_b2_21_6, 0x5b1_b1_7b_7, 0x5c0_00_01_6, 0x5c1_88_3e_6, 0x5c1_c4_3b_7, 0x5d0_00_5b_7,
    0x5d1_99_6b_7, 0x5d1_98_1e_6, 0x5d1_d5_1b_7, 0x5d1_d4_2e_6, 0x5d1_d1_2b_7, 0x5e0_00_4b_7, 0x5e1_66_0b_7,
    0x5e1_ea_33_7, 0x5e1_e2_0e_6, 0x5e1_ec_73_7, 0x5e1_e8_36_6, 0x5e1_e4_53_7, 0x5f0_00_13_7, 0x5f1_77_43_7,
    0x5f1_76_16_6, 0x5f1_75_63_7, 0x5f1_fc_23_7, 0x5f1_f4_0c_5, 0x5f1_d9_03_7, 0x5f1_fa_3d_7, 0x5f1_f8_14_5,
    0x5f1_f3_7d_7, 0x5f1_f2_04_5, 0x5f1_f1_06_6, 0x600_00_00_3, 0x610_00_04_4, 0x611_11_03_6, 0x620_00_0c_5,
    0x621_22_0d_6, 0x630_00_1a_5, 0x631_33_3d_6, 0x631_31_1d_6, 0x631_32_2d_6, 0x640_00_0a_5, 0x641_44_3f_7,
    0x650_00_35_6, 0x651_11_15_6, 0x651_54_7f_7, 0x660_00_25_6, 0x661_22_5f_7, 0x661_64_1f_7, 0x670_00_6f_7,
    0x671_66_4f_7, 0x671_64_05_6, 0x671_73_2f_7, 0x671_71_36_6, 0x671_72_77_7, 0x680_00_12_5, 0x681_88_0f_7,
    0x690_00_39_6, 0x691_11_37_7, 0x691_98_57_7, 0x6a0_00_19_6, 0x6a1_22_29_6, 0x6a1_a8_17_7, 0x6b0_00_67_7,
    0x6b1_99_47_7, 0x6b1_91_09_6, 0x6b1_ba_27_7, 0x6b1_b2_31_6, 0x6b1_b8_7b_7, 0x6c0_00_11_6, 0x6c1_cc_07_7,
    0x6c1_c8_21_6, 0x6c1_c4_3b_7, 0x6d0_00_5b_7, 0x6d1_55_33_7, 0x6d1_54_01_6, 0x6d1_c8_1b_7, 0x6d1_d1_6b_7,
    0x6e0_00_2b_7, 0x6e1_e2_4b_7, 0x6e1_22_0b_7, 0x6e1_ec_73_7, 0x6e1_e8_3e_6, 0x6e1_e4_53_7, 0x6f0_00_13_7,
    0x6f1_66_1e_6, 0x6f1_ea_2e_6, 0x6f1_f3_0e_6, 0x6f1_f2_02_5, 0x6f1_b9_63_7, 0x6f1_fc_16_6, 0x6f1_f8_06_6,
    0x6f1_f5_23_7, 0x6f1_f1_1c_5, 0x6f1_f4_26_6, 0x700_00_12_5, 0x710_00_05_6, 0x711_11_7f_7, 0x720_00_39_6,
    0x721_22_3f_7, 0x730_00_5f_7, 0x731_33_1f_7, 0x731_32_6f_7, 0x731_31_2f_7, 0x740_00_4f_7, 0x741_44_0f_7,
    0x750_00_57_7, 0x751_11_19_6, 0x751_54_77_7, 0x760_00_37_7, 0x761_00_29_6, 0x770_00_17_7, 0x771_66_67_7,
    0x771_73_27_7, 0x771_72_47_7, 0x771_75_1b_7, 0x771_71_09_6, 0x771_74_07_7, 0x780_00_7b_7, 0x781_88_3b_7,
    0x790_00_5b_7, 0x791_00_31_6, 0x7a0_00_53_7, 0x7a1_22_11_6, 0x7a1_a8_6b_7, 0x7b0_00_2b_7, 0x7b1_99_4b_7,
    0x7b1_b3_0b_7, 0x7b1_b1_73_7, 0x7b1_ba_33_7, 0x7b1_b2_21_6, 0x7b1_b8_13_7, 0x7c0_00_63_7, 0x7c1_88_23_7,
    0x7c1_c4_43_7, 0x7d0_00_03_7, 0x7d1_99_7d_7, 0x7d1_d5_5d_7, 0x7d1_d1_01_6, 0x7d1_dc_3d_7, 0x7d1_d4_3e_6,
    0x7d1_d8_1d_7, 0x7e0_00_6d_7, 0x7e1_66_2d_7, 0x7e1_ea_0d_7, 0x7e1_e2_1e_6, 0x7e1_ec_4d_7, 0x7e1_e8_0e_6,
    0x7e1_e4_75_7, 0x7f0_00_15_7, 0x7f1_ff_06_5, 0x7f1_fd_35_7, 0x7f1_f7_55_7, 0x7f1_f5_1a_5, 0x7f1_fb_25_7,
    0x7f1_f3_0a_5, 0x7f1_f9_2e_6, 0x7f1_f1_00_4, 0x7f1_fe_65_7, 0x7f1_f6_36_6, 0x7f1_fa_02_5, 0x7f1_f2_0c_4,
    0x7f1_fc_16_6, 0x7f1_f8_04_4, 0x7f1_f4_08_4,
];

/// Codes of all rows of quads but the first (ITU-T T.814, Annex C), in the same form.
#[rustfmt::skip]
#[allow(clippy::unreadable_literal, clippy::unusual_byte_groupings)]
const OTHER_ROWS: [u32; 358] = [
    0x010_00_00_3, 0x011_11_27_6, 0x020_00_06_3, 0x021_22_17_6, 0x030_00_0d_5, 0x031_00_3b_6, 0x040_00_02_3,
    0x041_44_07_6, 0x050_00_15_5, 0x051_00_2b_6, 0x060_00_01_5, 0x061_00_7f_7, 0x070_00_1f_7, 0x071_00_1b_6,
    0x080_00_04_3, 0x081_88_05_5, 0x090_00_19_5, 0x091_00_13_6, 0x0a0_00_09_5, 0x0a1_88_0b_6, 0x0a1_a2_3f_7,
    0x0b0_00_5f_7, 0x0b1_00_33_6, 0x0c0_00_11_5, 0x0c1_88_23_6, 0x0c1_c4_6f_7, 0x0d0_00_0f_7, 0x0d1_00_03_6,
    0x0e0_00_2f_7, 0x0e1_44_4f_7, 0x0e1_40_3d_6, 0x0f0_00_77_7, 0x0f1_11_37_7, 0x0f1_10_1d_6, 0x100_00_00_1,
    0x110_00_05_4, 0x111_11_7f_7, 0x120_00_09_4, 0x121_22_1f_7, 0x130_00_1d_5, 0x131_11_3f_7, 0x131_32_5f_7,
    0x140_00_0d_5, 0x141_44_37_7, 0x150_00_03_6, 0x151_00_6f_7, 0x160_00_2f_7, 0x161_00_4f_7, 0x170_00_0f_7,
    0x171_00_77_7, 0x180_00_01_4, 0x181_88_17_7, 0x190_00_0b_6, 0x191_00_57_7, 0x1a0_00_33_6, 0x1a1_00_67_7,
    0x1b0_00_27_7, 0x1b1_00_2b_7, 0x1c0_00_13_6, 0x1c1_00_47_7, 0x1d0_00_07_7, 0x1d1_00_7b_7, 0x1e0_00_3b_7,
    0x1e1_00_5b_7, 0x1f0_00_1b_7, 0x1f1_44_6b_7, 0x1f1_40_23_6, 0x200_00_00_1, 0x210_00_09_4, 0x211_11_7f_7,
    0x220_00_01_4, 0x221_22_23_6, 0x230_00_3d_6, 0x231_22_3f_7, 0x231_31_1f_7, 0x240_00_15_5, 0x241_44_5f_7,
    0x250_00_03_6, 0x251_00_6f_7, 0x260_00_2f_7, 0x261_00_4f_7, 0x270_00_0f_7, 0x271_00_17_7, 0x280_00_05_5,
    0x281_88_77_7, 0x290_00_37_7, 0x291_00_57_7, 0x2a0_00_1d_6, 0x2a1_aa_7b_7, 0x2a1_a2_2d_6, 0x2a1_a8_67_7,
    0x2b0_00_27_7, 0x2b1_b2_47_7, 0x2b1_00_07_7, 0x2c0_00_0d_6, 0x2c1_00_3b_7, 0x2d0_00_5b_7, 0x2d1_00_1b_7,
    0x2e0_00_6b_7, 0x2e1_44_2b_7, 0x2e1_40_4b_7, 0x2f0_00_0b_7, 0x2f1_44_73_7, 0x2f1_51_33_7, 0x2f1_72_53_7,
    0x2f1_f8_13_7, 0x300_00_00_2, 0x310_00_0a_4, 0x311_11_0b_6, 0x320_00_02_4, 0x321_22_23_6, 0x330_00_0e_5,
    0x331_33_7f_7, 0x331_32_33_6, 0x331_31_13_6, 0x340_00_16_5, 0x341_44_3f_7, 0x350_00_03_6, 0x351_11_3d_6,
    0x351_54_1f_7, 0x360_00_1d_6, 0x361_00_5f_7, 0x370_00_2d_6, 0x371_44_2f_7, 0x371_51_1e_6, 0x371_72_6f_7,
    0x380_00_06_5, 0x381_88_4f_7, 0x390_00_0d_6, 0x391_00_35_6, 0x3a0_00_15_6, 0x3a1_22_25_6, 0x3a1_a8_0f_7,
    0x3b0_00_05_6, 0x3b1_88_39_6, 0x3b1_b3_17_7, 0x3b1_b2_19_6, 0x3b1_b1_77_7, 0x3c0_00_29_6, 0x3c1_00_09_6,
    0x3d0_00_37_7, 0x3d1_44_57_7, 0x3d1_40_31_6, 0x3e0_00_67_7, 0x3e1_44_27_7, 0x3e1_c8_47_7, 0x3e1_e2_6b_7,
    0x3f0_00_11_6, 0x3f1_66_07_7, 0x3f1_73_7b_7, 0x3f1_fa_3b_7, 0x3f1_f2_21_6, 0x3f1_f8_01_6, 0x3f1_a8_5b_7,
    0x3f1_f5_1b_7, 0x3f1_f1_3e_6, 0x3f1_f4_2b_7, 0x400_00_00_1, 0x410_00_0d_5, 0x411_11_7f_7, 0x420_00_15_5,
    0x421_22_3f_7, 0x430_00_5f_7, 0x431_00_6f_7, 0x440_00_09_4, 0x441_44_23_6, 0x450_00_33_6, 0x451_00_1f_7,
    0x460_00_13_6, 0x461_00_2f_7, 0x470_00_4f_7, 0x471_00_57_7, 0x480_00_01_4, 0x481_88_0f_7, 0x490_00_77_7,
    0x491_00_37_7, 0x4a0_00_1d_6, 0x4a1_00_17_7, 0x4b0_00_67_7, 0x4b1_00_6b_7, 0x4c0_00_05_5, 0x4c1_cc_27_7,
    0x4c1_c8_47_7, 0x4c1_c4_07_7, 0x4d0_00_7b_7, 0x4d1_00_3b_7, 0x4e0_00_5b_7, 0x4e1_22_1b_7, 0x4e1_20_03_6,
    0x4f0_00_2b_7, 0x4f1_11_4b_7, 0x4f1_32_0b_7, 0x4f1_30_3d_6, 0x500_00_00_2, 0x510_00_1e_5, 0x511_11_3b_6,
    0x520_00_0a_5, 0x521_22_3f_7, 0x530_00_1b_6, 0x531_00_0b_6, 0x540_00_02_4, 0x541_44_2b_6, 0x550_00_0e_5,
    0x551_44_33_6, 0x551_51_7f_7, 0x560_00_13_6, 0x561_00_6f_7, 0x570_00_23_6, 0x571_22_5f_7, 0x571_20_15_6,
    0x580_00_16_5, 0x581_88_03_6, 0x590_00_3d_6, 0x591_00_1f_7, 0x5a0_00_1d_6, 0x5a1_00_2d_6, 0x5b0_00_0d_6,
    0x5b1_11_4f_7, 0x5b1_10_35_6, 0x5c0_00_06_5, 0x5c1_44_25_6, 0x5c1_c8_2f_7, 0x5d0_00_05_6, 0x5d1_11_77_7,
    0x5d1_54_39_6, 0x5d1_d8_0f_7, 0x5e0_00_19_6, 0x5e1_22_57_7, 0x5e1_a8_01_6, 0x5e1_e4_37_7, 0x5f0_00_1a_5,
    0x5f1_99_17_7, 0x5f1_d5_67_7, 0x5f1_f3_07_7, 0x5f1_f1_29_6, 0x5f1_76_27_7, 0x5f1_fc_09_6, 0x5f1_f4_31_6,
    0x5f1_fa_47_7, 0x5f1_f8_11_6, 0x5f1_f2_21_6, 0x600_00_00_3, 0x610_00_02_4, 0x611_11_03_6, 0x620_00_0c_4,
    0x621_22_3d_6, 0x630_00_1d_6, 0x631_22_0d_6, 0x631_31_7f_7, 0x640_00_04_4, 0x641_44_2d_6, 0x650_00_0a_5,
    0x651_44_35_6, 0x651_51_2f_7, 0x660_00_15_6, 0x661_22_3f_7, 0x661_64_5f_7, 0x670_00_25_6, 0x671_22_29_6,
    0x671_31_1f_7, 0x671_74_6f_7, 0x680_00_16_5, 0x681_88_05_6, 0x690_00_39_6, 0x691_00_19_6, 0x6a0_00_06_5,
    0x6a1_aa_0f_7, 0x6a1_a2_09_6, 0x6a1_a8_4f_7, 0x6b0_00_0e_6, 0x6b1_b2_77_7, 0x6b1_22_37_7, 0x6b1_a8_57_7,
    0x6b1_b1_47_7, 0x6c0_00_1a_5, 0x6c1_cc_17_7, 0x6c1_c8_67_7, 0x6c1_c4_27_7, 0x6d0_00_31_6, 0x6d1_d4_07_7,
    0x6d1_44_7b_7, 0x6d1_c8_3b_7, 0x6d1_d1_2b_7, 0x6e0_00_11_6, 0x6e1_e4_5b_7, 0x6e1_44_1b_7, 0x6e1_ea_6b_7,
    0x6e1_e8_21_6, 0x6e1_e2_33_7, 0x6f0_00_01_6, 0x6f1_33_4b_7, 0x6f1_76_0b_7, 0x6f1_fa_73_7, 0x6f1_f2_3e_6,
    0x6f1_b9_53_7, 0x6f1_fc_63_7, 0x6f1_f8_1e_6, 0x6f1_f5_13_7, 0x6f1_f4_2e_6, 0x6f1_f1_23_7, 0x700_00_04_4,
    0x710_00_33_6, 0x711_11_13_6, 0x720_00_23_6, 0x721_22_7f_7, 0x730_00_03_6, 0x731_11_3f_7, 0x731_32_6f_7,
    0x740_00_2d_6, 0x741_44_5f_7, 0x750_00_16_5, 0x751_11_3d_6, 0x751_54_1f_7, 0x760_00_1d_6, 0x761_00_77_7,
    0x770_00_06_5, 0x771_74_2f_7, 0x771_44_4f_7, 0x771_73_0f_7, 0x771_71_0d_6, 0x771_72_57_7, 0x780_00_35_6,
    0x781_88_37_7, 0x790_00_15_6, 0x791_00_27_7, 0x7a0_00_25_6, 0x7a1_00_29_6, 0x7b0_00_1a_5, 0x7b1_b1_17_7,
    0x7b1_11_67_7, 0x7b1_32_05_6, 0x7b1_b8_7b_7, 0x7c0_00_39_6, 0x7c1_00_19_6, 0x7d0_00_0c_5, 0x7d1_d1_47_7,
    0x7d1_11_07_7, 0x7d1_54_09_6, 0x7d1_d8_1b_7, 0x7e0_00_31_6, 0x7e1_e2_3b_7, 0x7e1_22_5b_7, 0x7e1_a8_3e_6,
    0x7e1_e4_0b_7, 0x7f0_00_00_3, 0x7f1_ff_6b_7, 0x7f1_f7_2b_7, 0x7f1_fb_4b_7, 0x7f1_f3_11_6, 0x7f1_76_21_6,
    0x7f1_fa_01_6, 0x7f1_f2_0a_5, 0x7f1_b9_1e_6, 0x7f1_fc_0e_6, 0x7f1_f8_12_5, 0x7f1_f5_2e_6, 0x7f1_f1_02_5,
    0x7f1_f4_1c_5,
];

/// The decoder's codes of the first row of quads, by context and the next seven bits.
/// Bits from the lowest: length (3), offset (1), ρ (4), e_1 (4), e_k (4).
pub(super) static DECODE_FIRST: [u16; 1024] = decoding(&FIRST_ROW);
/// The decoder's codes of all rows of quads but the first, in the form of [`DECODE_FIRST`].
pub(super) static DECODE_OTHER: [u16; 1024] = decoding(&OTHER_ROWS);

/// The encoder's codes of the first row of quads, by context, ρ and the samples that reach the bound (none of
/// them: there is no offset). Bits from the lowest: e_k (4), length (4), codeword (7).
pub(super) static ENCODE_FIRST: [u16; 2048] = encoding(&FIRST_ROW);
/// The encoder's codes of all rows of quads but the first, in the form of [`ENCODE_FIRST`].
pub(super) static ENCODE_OTHER: [u16; 2048] = encoding(&OTHER_ROWS);

/// The encoder's codes, of the first row of quads of a block and of the others, for coders of the same blocks
/// elsewhere. Looked up by context (times 256), ρ (times 16) and the samples that reach the bound (none of them: there
/// is no offset). Bits from the lowest: e_k (4), length (4), codeword (7).
pub fn encoder_codes() -> [&'static [u16; 2048]; 2] {
    [&ENCODE_FIRST, &ENCODE_OTHER]
}

const fn digit(entry: u32, at: u32) -> u32 {
    entry >> (4 * at) & 15
}

const fn decoding(source: &[u32]) -> [u16; 1024] {
    let mut table = [0; 1024];
    let mut i = 0;
    while i < source.len() {
        let entry = source[i];
        let length = digit(entry, 0);
        let found = length
            | digit(entry, 5) << 3
            | digit(entry, 6) << 4
            | digit(entry, 3) << 8
            | digit(entry, 4) << 12;
        let mut rest = 0;
        while rest < 128 >> length {
            let bits = entry >> 4 & 0x7f | rest << length;
            table[(digit(entry, 7) << 7 | bits) as usize] = found as u16;
            rest += 1;
        }
        i += 1;
    }
    table
}

const fn encoding(source: &[u32]) -> [u16; 2048] {
    let mut table = [0; 2048];
    // The cost of each choice: its length minus the number of magnitude bits that it makes known.
    let mut costs = [i32::MAX; 2048];
    let mut i = 0;
    while i < source.len() {
        let entry = source[i];
        let (known, reached) = (digit(entry, 4), digit(entry, 3));
        let significant = digit(entry, 6);
        let length = digit(entry, 0);
        let cost = length as i32 - (known & significant).count_ones() as i32;
        let mut top = 0;
        while top < 16 {
            let at = (digit(entry, 7) << 8 | significant << 4 | top) as usize;
            let offset = top != 0;
            if top & !significant == 0
                && offset == (digit(entry, 5) == 1)
                && top & known == reached
                && cost < costs[at]
            {
                costs[at] = cost;
                table[at] = ((entry >> 4 & 0x7f) << 8 | length << 4 | known) as u16;
            }
            top += 1;
        }
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seven_bits_mean_something_and_codes_read_back() {
        for (decode, encode) in [(&DECODE_FIRST, &ENCODE_FIRST), (&DECODE_OTHER, &ENCODE_OTHER)] {
            assert!(decode.iter().all(|&found| (1..8).contains(&(found & 7))));
            for context in 0..8 {
                for significant in 0..16u16 {
                    for top in (0..16u16).filter(|t| t & !significant == 0) {
                        if context == 0 && significant == 0 {
                            continue;
                        }
                        let code = encode[usize::from(context << 8 | significant << 4 | top)];
                        let found = decode[usize::from(context << 7 | code >> 8)];
                        assert_eq!(found & 7, code >> 4 & 15);
                        assert_eq!(found >> 3 & 1, u16::from(top != 0));
                        assert_eq!(found >> 4 & 15, significant);
                        assert_eq!(found >> 12, code & 15);
                        assert_eq!(found >> 8 & 15, top & found >> 12);
                    }
                }
            }
        }
    }
}
