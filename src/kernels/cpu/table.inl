// The rows of the operator table, after .name. Included by cpu/*.cpp.
.pack_input = pack_input, .linear = linear, .rms_norm = rms_norm, .sum_of_squares = sum_of_squares,
    .hc_collapse = hc_collapse, .hc_expand = hc_expand, .swiglu = swiglu, .add = add,
    .round_bf16 = round_bf16, .rope = rope, .decode_bf16 = decode_bf16, .decode_row = decode_row,
    .attend = attend, .index_scores = index_scores, .transpose_keys = transpose_keys,
    .pool_group = pool_group, .engram_mix = engram_mix,
