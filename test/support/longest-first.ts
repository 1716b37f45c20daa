import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/**
 * Begins each project with these files, in this order: a file that takes long would otherwise run on alone at the end. By the path in `test`, without its
 * ending. The files of a project stay together, because vitest ends the process that they share as soon as the next file in line is not one of them.
 */
export function longestFirst(...paths: readonly string[]): TestSequencerConstructor {
  const rank = ({ moduleId }: TestSpecification) => {
    const at = paths.findIndex((path) => moduleId.endsWith(`/test/${path}.test.ts`));
    return at === -1 ? paths.length : at;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer, and of no array
      const sorted = await super.sort(files);
      const projects = [...new Set(sorted.map(({ project }) => project.name))];
      const place = ({ project }: TestSpecification) => projects.indexOf(project.name);
      return sorted.toSorted((one, other) => place(one) - place(other) || rank(one) - rank(other));
    }
  };
}
