// franz-go while brokers fail: tests/faults/cluster/clients/speech.py says what it is told and what it says.
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

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	atOnce     = 10
	pause      = 100 * time.Millisecond
	waitingMax = 1000
	delivery   = 180 * time.Second
	poll       = 200 * time.Millisecond
	readAtOnce = 500
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

func connect(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(os.Args[2], ",")...),
		kgo.MetadataMinAge(200*time.Millisecond))...)
	check(err)
	return client
}

func write(topic string, partitions int) {
	producer := connect(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic),
		kgo.RecordDeliveryTimeout(delivery))
	sent, waiting := 0, atomic.Int32{}
	for isOver.Err() == nil {
		time.Sleep(pause)
		for i := 0; i < atOnce && waiting.Load() < waitingMax; i++ {
			number := sent
			sent++
			waiting.Add(1)
			record := &kgo.Record{Partition: int32(number % partitions), Value: []byte(strconv.Itoa(number))}
			producer.Produce(context.Background(), record, func(record *kgo.Record, err error) {
				check(err)
				waiting.Add(-1)
				say("acked", number, record.Partition, record.Offset)
			})
		}
	}
	check(producer.Flush(context.Background()))
	producer.Close()
	say("sent", sent)
}

func read(topic, group string) {
	consumer := connect(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(600*time.Millisecond), kgo.BlockRebalanceOnPoll())
	for isOver.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), poll)
		fetches := consumer.PollRecords(ctx, readAtOnce)
		cancel()
		last := map[int32]*kgo.Record{}
		fetches.EachRecord(func(record *kgo.Record) {
			say("read", record.Partition, record.Offset, string(record.Value))
			last[record.Partition] = record
		})
		commit(consumer, last)
		consumer.AllowRebalance()
	}
	consumer.CloseAllowingRebalance()
}

// commit says what was done; what was not is the next commit's.
func commit(consumer *kgo.Client, last map[int32]*kgo.Record) {
	records := []*kgo.Record{}
	for _, record := range last {
		records = append(records, record)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if len(records) == 0 || consumer.CommitRecords(ctx, records...) != nil {
		return
	}
	for _, record := range records {
		say("committed", record.Partition, record.Offset+1)
	}
}

func main() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		over()
	}()
	if os.Args[1] == "write" {
		partitions, err := strconv.Atoi(os.Args[4])
		check(err)
		write(os.Args[3], partitions)
	} else {
		read(os.Args[3], os.Args[4])
	}
}
