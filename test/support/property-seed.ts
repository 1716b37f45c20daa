import fc from 'fast-check';

/** With PROPERTY_SEED every randomized test draws the same cases each time, as in the gate. Without it each draws its own, and names the seed when it fails. */
const seed = process.env.PROPERTY_SEED;
if (seed) fc.configureGlobal({ seed: Number(seed) });
