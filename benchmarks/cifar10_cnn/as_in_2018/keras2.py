"""Keras 2 as it was usual in 2018: layers added one by one, one-hot labels, the accuracy measured while training, a progress bar."""

# %% model
model = keras.models.Sequential()
model.add(Conv2D(50, (3, 3), padding="same", activation="relu", input_shape=x_train.shape[1:]))
model.add(Conv2D(50, (3, 3), padding="same"))
model.add(MaxPooling2D((2, 2)))
model.add(Activation("relu"))
if DROPOUT:
    model.add(Dropout(0.25))
model.add(Conv2D(100, (3, 3), padding="same", activation="relu"))
model.add(Conv2D(100, (3, 3), padding="same"))
model.add(MaxPooling2D((2, 2)))
model.add(Activation("relu"))
if DROPOUT:
    model.add(Dropout(0.25))
model.add(Flatten())
model.add(Dense(512, activation="relu"))
if DROPOUT:
    model.add(Dropout(0.5))
model.add(Dense(10, activation="softmax"))


def predict():
    return model.predict(x_test, batch_size=500)


def accuracy(probabilities):
    return np.mean(probabilities.argmax(axis=1) == y_test)


# %% optimizer
model.compile(
    loss="categorical_crossentropy", optimizer=keras.optimizers.SGD(lr=LR, momentum=MOMENTUM), metrics=["accuracy"]
)


# %% train
class Epochs(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        log.epoch(logs["loss"])
        if TEST_EACH_EPOCH:
            log.test(accuracy(predict()))


log = EpochLog(EPOCHS)
model.fit(x_train, y_train, batch_size=BATCHSIZE, epochs=EPOCHS, verbose=1, callbacks=[Epochs()])
