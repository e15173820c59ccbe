#include "engine/maker/sample_text.hpp"

namespace troika::maker {

const std::string_view kSampleText =
    R"(A cluster is a group of machines that work on one task. Each machine runs a share of the layers of the model, and the
activations travel from one machine to the next. The first machine turns words into vectors, the last machine turns
vectors into words. When a machine fails, the others stop, and the leader starts the replica again.

Three horses pull one carriage. The horse in the middle trots, the horses at the sides gallop, and the driver holds the
reins of all three. If one horse stumbles, the driver stops the carriage, looks at the harness, and only then goes on.

The leader writes down what it wants before it does it. The agents tell the leader what they see, and they never guess.
If an agent cannot tell, it says so. A file that was copied is not a file that was proven. The proof reads every byte of
every shard, and compares the result with the manifest. One wrong byte is enough to refuse the start.

Memory is the enemy. The cache grows, the pages fill, and the kernel looks for a victim. A guard with a floor is better than
a guard with a guess. Numbers have units: bytes, seconds, tokens, percent. A number without a unit is a rumour.

A request arrives at the gateway. The gateway counts its tokens, looks at the rate, and lets it in or sends it away with a
time at which to come again. A stream that began on one replica ends there. If the engine dies in the middle of the answer,
the stream ends with an error, and the next request goes to the other replica.

What is a pipeline? A pipeline is a line of stages. What is a stage? A stage is the share of the layers that one rank runs.
What is an epoch? An epoch is the number of one start of a replica; it is never used twice. What is a term? A term is the
number of one leadership. Who decides? The policy decides, the agent acts, and the log remembers.

The network has two rails between every pair of machines. A cable that is loose is slow before it is dead, so we measure
the bandwidth and the latency of each link, and we do not trust the light on the port. Good operators read the counters.
They know that a healthy page does not mean a healthy model. They ask the model a question and wait for the answer.

In the evening the cluster is quiet. The small lights blink, the fans turn slowly, and the disks are asleep. In the morning
the first request comes: please write a short story about a river. The river was old and slow, and it carried the leaves of
the forest to the sea. The children made small boats of paper and let them go with the water. Some boats came far.

1, 2, 3, 4, 5, 6, 7, 8, 9, 10. 2024, 2025, 2026. for (int i = 0; i < 10; ++i) { sum += values[i]; } return sum;
Grüße aus Köln, où êtes-vous? 你好，世界。模型在三台机器上运行。集群是健康的。
)";

}  // namespace troika::maker
