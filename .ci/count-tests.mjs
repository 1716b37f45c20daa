// usage: node .ci/count-tests.mjs <vitest JSON report>...
// Prints what failed and why, then what FIRST_FAILURE says, and then the line `N passed, N failed` over all reports. A test file that could
// not be run at all, and a suite that wrote no report, count as one failure each.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** The first lines of a failure: what was expected, and where. */
const inset = (text) => text.split('\n').slice(0, 12).join('\n').replace(/^/gm, '        ');

let passed = 0;
let failed = 0;
let skipped = 0;
const failures = [];
for (const file of process.argv.slice(2)) {
  if (!existsSync(file)) {
    failures.push(`no report: ${file}`);
    failed += 1;
    continue;
  }
  const report = JSON.parse(readFileSync(file, 'utf8'));
  passed += report.numPassedTests;
  failed += report.numFailedTests;
  for (const { name, status, message, assertionResults } of report.testResults) {
    const faults = assertionResults.filter((test) => test.status === 'failed');
    for (const { fullName, failureMessages } of faults) failures.push(`failed: ${relative('.', name)}: ${fullName}\n${inset(failureMessages.join('\n'))}`);
    if (status !== 'failed' || faults.length > 0) continue;
    failed += 1;
    failures.push(`could not run: ${relative('.', name)}\n${inset(message)}`);
  }
  skipped += report.numPendingTests + report.numTodoTests;
}
for (const failure of failures.toReversed()) console.log(failure);
if (process.env.FIRST_FAILURE) console.log(process.env.FIRST_FAILURE);
if (skipped > 0) console.log(`${skipped} skipped`);
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0) process.exitCode = 1;
