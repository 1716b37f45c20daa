/** The files that name the version, by their path in the checkout, and how each is given another one. Whatever is not there is left out. */
export const VERSIONED: Readonly<Record<string, (text: string, version: string) => string>> = {
  'package.json': (text, version) => replaced(text, /^ {2}"version": "[^"]+"/m, `  "version": "${version}"`),
  // The root of the tree, and the package of its own in the list.
  'package-lock.json': (text, version) =>
    replaced(
      replaced(text, /^ {2}"version": "[^"]+"/m, `  "version": "${version}"`),
      /("": \{\n {6}"name": "muster",\n {6}"version": ")[^"]+"/,
      `$1${version}"`,
    ),
  'deploy/chart/Chart.yaml': (text, version) =>
    replaced(replaced(text, /^version: .+$/m, `version: ${version}`), /^appVersion: .+$/m, `appVersion: "${version}"`),
};

function replaced(text: string, pattern: RegExp, by: string): string {
  if (!pattern.test(text)) throw new Error(`nothing in it matches ${pattern}`);
  return text.replace(pattern, by);
}

/** Whether `next` is a later version than `current`. Both are of three numbers. */
export function isLater(next: string, current: string): boolean {
  const [a, b] = [next, current].map((version) => version.split('.').map(Number));
  const place = a!.findIndex((number, i) => number !== b![i]);
  return place !== -1 && a![place]! > b![place]!;
}
