// Checks the rooms of src/: import ranks, cycles, names. The ranks are in rooms/ranks.ts, their reasons in CONTRIBUTING.md.
import { fileURLToPath } from 'node:url';
import { findViolations } from './rooms/violations.js';

const violations = findViolations(fileURLToPath(new URL('..', import.meta.url)));
for (const violation of violations) console.error(violation);
if (violations.length > 0) process.exitCode = 1;
else console.log('rooms: imports, cycles and names are in order');
