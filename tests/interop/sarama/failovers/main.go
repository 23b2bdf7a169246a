// sarama while brokers fail: tests/faults/cluster/clients/speech.py says what it is told and what it says. It
// does not tell which commits were done. It is not idempotent here: where a connection is lost sarama 1.43 sends the
// records again in other batches, which a broker refuses (OUT_OF_ORDER_SEQUENCE_NUMBER), as Apache Kafka does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

const (
	atOnce     = 10
	pause      = 100 * time.Millisecond
	waitingMax = 1000
	backoff    = 200 * time.Millisecond
	retries    = 900
)

var (
	isOver, over = context.WithCancel(context.Background())
	mouth        sync.Mutex
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func say(words ...any) {
	mouth.Lock()
	defer mouth.Unlock()
	fmt.Println(words...)
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = retries
	config.Metadata.Retry.Backoff = backoff
	return config
}

func write(servers []string, topic string, partitions int) {
	config := settings()
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Retry.Max = retries
	config.Producer.Retry.Backoff = backoff
	producer, err := sarama.NewAsyncProducer(servers, config)
	check(err)
	waiting, told := atomic.Int32{}, sync.WaitGroup{}
	told.Add(2)
	go func() {
		defer told.Done()
		for message := range producer.Successes() {
			waiting.Add(-1)
			say("acked", message.Metadata, message.Partition, message.Offset)
		}
	}()
	go func() {
		defer told.Done()
		for lost := range producer.Errors() {
			panic(lost)
		}
	}()
	sent := 0
	for isOver.Err() == nil {
		time.Sleep(pause)
		for i := 0; i < atOnce && waiting.Load() < waitingMax; i++ {
			waiting.Add(1)
			producer.Input() <- &sarama.ProducerMessage{Topic: topic, Partition: int32(sent % partitions),
				Value: sarama.StringEncoder(strconv.Itoa(sent)), Metadata: sent}
			sent++
		}
	}
	producer.AsyncClose()
	told.Wait()
	say("sent", sent)
}

// member says what it reads, and commits it.
type member struct{}

func (member) Setup(sarama.ConsumerGroupSession) error { return nil }

func (member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			say("read", message.Partition, message.Offset, string(message.Value))
			session.MarkMessage(message, "")
			if len(claim.Messages()) == 0 {
				session.Commit()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func read(servers []string, topic, group string) {
	config := settings()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 600 * time.Millisecond
	consumer, err := sarama.NewConsumerGroup(servers, group, config)
	check(err)
	for isOver.Err() == nil {
		if err := consumer.Consume(isOver, []string{topic}, member{}); err != nil {
			time.Sleep(backoff)
		}
	}
	check(consumer.Close())
}

func main() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		over()
	}()
	servers := strings.Split(os.Args[2], ",")
	if os.Args[1] == "write" {
		partitions, err := strconv.Atoi(os.Args[4])
		check(err)
		write(servers, os.Args[3], partitions)
	} else {
		read(servers, os.Args[3], os.Args[4])
	}
}
