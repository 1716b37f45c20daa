import { afterAll } from 'vitest';
import { makeHome, removeHome } from '../cli/run-muster.js';
import { killStarted } from './process.js';

// Files that share a process share its modules, and hooks of these are those of the first file alone. vitest reads this module again for each file.

makeHome();
afterAll(() => {
  killStarted();
  removeHome();
});
