/** What is put goes to one of those who take, and the end to all of them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue } from "../src/queues.js";
import { settled } from "./support.js";

for (const takers of [1, 2, 3, 5]) {
  test(`each item is taken once and the end is heard by all of ${takers}`, async () => {
    const queue = new Queue<number>(100, () => assert.fail("dropped"));
    const taken: number[] = [];
    let ended = 0;
    const all = Array.from({ length: takers }, async () => {
      for await (const item of queue.all()) taken.push(item);
      ended++;
    });
    for (let item = 0; item < 10; item++) {
      await settled();
      queue.put(item);
      if (item % 3 === 0) queue.put(100 + item);
    }
    await settled();
    queue.end();
    await settled();
    assert.equal(ended, takers);
    assert.deepEqual(taken.sort((a, b) => a - b), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 103, 106, 109]);
    await Promise.all(all);
  });
}
