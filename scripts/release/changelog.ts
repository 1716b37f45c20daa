const UNRELEASED = '## [Unreleased]';

export interface Cut {
  /** The changelog with an empty place for what comes next. */
  readonly changelog: string;
  /** What the release says of itself: the text before the lists, or the lists where there is none. */
  readonly notes: string;
}

/** Makes a version of what is unreleased. `day` is YYYY-MM-DD. Throws where there is nothing, or the version is there already. */
export function cutChangelog(changelog: string, version: string, day: string): Cut {
  const begin = changelog.indexOf(`${UNRELEASED}\n`);
  if (begin === -1) throw new Error(`CHANGELOG.md has no line "${UNRELEASED}"`);
  if (changelog.includes(`\n## [${version}]`)) throw new Error(`CHANGELOG.md has a section of ${version} already`);
  const after = begin + UNRELEASED.length;
  const next = changelog.indexOf('\n## [', after);
  const section = changelog.slice(after, next === -1 ? undefined : next).trim();
  if (!/^- \S/m.test(section)) throw new Error('CHANGELOG.md has no entry under [Unreleased]');
  const lists = section.search(/^### (?:Added|Changed|Deprecated|Removed|Fixed|Security)$/m);
  const head = section.slice(0, lists === -1 ? 0 : lists).trim();
  return {
    changelog: `${changelog.slice(0, begin)}${UNRELEASED}\n\n## [${version}] - ${day}\n\n${section}\n${next === -1 ? '' : changelog.slice(next)}`,
    notes: `${head === '' ? section : `${head}\n\nCHANGELOG.md lists every change.`}\n`,
  };
}
