// TP:[2, 4]
inline AllReduceBestStrategyTableType AllReduceBestStrategyTableSM90 = {
    {
        // TP=2
        { // Fusion=NONE
            {0,4},
            {5,8}
        }
    },
    {    // TP=4
        {{4,4}, /* x */ {5,5}}}
};
