inline AllReduceBestStrategyTableType const AllReduceBestStrategyTableSM90 = {
    {
        // TP=2
        // Hidden:[1024, 2880]
        // Tokens:[1, 16, 256]
        { // Fusion=NONE
            {4,4,8},
            {4,5,-1}
        },
        { // Fusion=RESIDUAL_RMS_NORM
            {4,5,0},
            {-1,-1,-1}
        },
        { // Fusion=RESIDUAL_RMS_NORM_QUANT_FP8
            {-1,-1,-1},
            {-1,-1,-1}
        },
        { // Fusion=RESIDUAL_RMS_NORM_QUANT_NVFP4
            {-1,-1,-1},
            {-1,-1,-1}
        }
    },
    {
        // TP=4
        // Hidden:[1024]
        // Tokens:[1, 1024]
        { // Fusion=NONE
            {4,8}
        },
        { // Fusion=RESIDUAL_RMS_NORM
            {-1,-1}
        },
        { // Fusion=RESIDUAL_RMS_NORM_QUANT_FP8
            {-1,-1}
        },
        { // Fusion=RESIDUAL_RMS_NORM_QUANT_NVFP4
            {-1,-1}
        }
    }
};
